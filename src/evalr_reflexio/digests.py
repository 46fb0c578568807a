"""The digest of a playbook, by which a verdict on it says which text was judged."""

from __future__ import annotations

import hashlib
import json

_SCHEME = "user-playbook-incumbent-semantic-v1"


def playbook_digest(content: str, trigger: str | None) -> str:
    """What release 0.2.32 records of a user's playbook when it is judged: a hash of its text and of what triggers it.

    SHA-256 over the canonical JSON (RFC 8785) of the text's own SHA-256, the name of the scheme, and the trigger.
    """
    parts = {"content_digest": _sha256(content), "schema_version": _SCHEME, "trigger": trigger}
    return _sha256(json.dumps(parts, ensure_ascii=False, separators=(",", ":"), sort_keys=True))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
