"""What a repository's own .gitattributes say of its files, as linguist reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from evalr.logs.git.kinds import BINARY, GENERATED, VENDORED
from evalr.logs.git.repository import Repository

KINDS = {b"linguist-generated": GENERATED, b"linguist-vendored": VENDORED, b"binary": BINARY}
ATTRIBUTES = b".gitattributes"

_YES, _NO = (b"set", b"true"), (b"unset", b"false")


def kinds_by_attribute(
    repository: Repository, files: Mapping[bytes, bytes], paths: Iterable[bytes]
) -> dict[bytes, str | None]:
    """The kind of each path of which the newest commit's attributes say one, None where they say that it has none."""
    holders = {path: blob for path, blob in files.items() if path.rpartition(b"/")[2] == ATTRIBUTES}
    if not holders:
        return {}
    entries = (b"100644 %s\t%s\0" % (blob, path) for path, blob in holders.items())
    for _ in repository.run("update-index", "-z", "--index-info", given=entries):
        pass  # it prints nothing
    asked = (path + b"\0" for path in dict.fromkeys(paths))
    fields = repository.run("check-attr", "--cached", "-z", "--stdin", *map(bytes.decode, KINDS), given=asked)
    found: dict[bytes, str | None] = {}
    for path, name, value in _triples(fields):
        if value in _YES:
            found[path] = KINDS[name]
        elif value in _NO:
            found.setdefault(path, None)
    return found


def _triples(fields: Iterator[bytes]) -> Iterator[list[bytes]]:
    while triple := list(islice(fields, 3)):
        yield triple
