"""What a repository's own .gitattributes say of its files, as linguist reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from evalr.logs.git.kinds import BINARY, GENERATED, LOCKFILE, VENDORED
from evalr.logs.git.repository import Repository

KINDS = {b"linguist-generated": GENERATED, b"linguist-vendored": VENDORED, b"binary": BINARY}
DENIED = {b"linguist-generated": {GENERATED, LOCKFILE}, b"linguist-vendored": {VENDORED}}
"""What a file is not where an attribute is unset: lockfiles are generated ones. Binary is what has bytes of no text."""

ATTRIBUTES = b".gitattributes"

_YES, _NO = (b"set", b"true"), (b"unset", b"false")


class Said(NamedTuple):
    """What attributes say of a file: its kind, and which kinds it is not of."""

    kind: str | None = None
    denied: frozenset[str] = frozenset()


def kinds_by_attribute(
    repository: Repository, files: Mapping[bytes, bytes], paths: Iterable[bytes]
) -> dict[bytes, Said]:
    """What the newest commit's attributes say of those paths of which they say something.

    Raises:
        LogError: git cannot tell.
    """
    holders = {path: blob for path, blob in files.items() if path.rpartition(b"/")[2] == ATTRIBUTES}
    if not holders:
        return {}
    entries = (b"100644 %s\t%s\0" % (blob, path) for path, blob in holders.items())
    for _ in repository.run("update-index", "-z", "--index-info", given=entries):
        pass  # it prints nothing
    asked = (path + b"\0" for path in dict.fromkeys(paths))
    fields = repository.run("check-attr", "--cached", "-z", "--stdin", *map(bytes.decode, KINDS), given=asked)
    found: dict[bytes, Said] = {}
    for path, name, value in _triples(fields):
        said = found.get(path, Said())
        if value in _YES:
            found[path] = said._replace(kind=KINDS[name])
        elif value in _NO:
            found[path] = said._replace(denied=said.denied | DENIED.get(name, set()))
    return found


def _triples(fields: Iterator[bytes]) -> Iterator[list[bytes]]:
    while triple := list(islice(fields, 3)):
        yield triple
