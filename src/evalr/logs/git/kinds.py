"""Files whose text neither an agent nor a person wrote by hand, by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

LOCKFILE, VENDORED, GENERATED, BINARY = "lockfile", "vendored file", "generated file", "binary file"

_LOCKFILES = {
    "bun.lockb",
    "deno.lock",
    "go.sum",
    "gradle.lockfile",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "package.resolved",
    "packages.lock.json",
    "pnpm-lock.yaml",
    "pnpm-lock.yml",
    ".terraform.lock.hcl",
}
_VENDORED = {
    "bower_components",
    "node_modules",
    "pods",
    "third-party",
    "third_party",
    "thirdparty",
    "vendor",
    "vendored",
    "_vendor",
}
_GENERATED = (
    ".designer.cs",
    ".g.cs",
    ".g.dart",
    ".freezed.dart",
    ".map",
    ".min.css",
    ".min.js",
    ".pb.cc",
    ".pb.go",
    ".pb.h",
    "_pb2.py",
    "_pb2.pyi",
    "_pb2_grpc.py",
    ".snap",
)
_SAYS_GENERATED = re.compile(r"@generated\b|\bcode generated\b.{0,200}\bdo not edit\b", re.IGNORECASE)

HEAD = 8_000
"""How much of a text is looked at to say what it is: what git looks at for a NUL, which no text has."""


def kinds_by_name(path: str) -> Iterator[str]:
    """What kinds of file it is by its name, of those that nobody writes by hand."""
    *folders, name = path.casefold().split("/")
    if name in _LOCKFILES or name.endswith((".lock", "-lock.json")):
        yield LOCKFILE
    if not _VENDORED.isdisjoint(folders):
        yield VENDORED
    if name.endswith(_GENERATED):
        yield GENERATED


def kind_by_text(text: str) -> str | None:
    """What kind it is by how its text begins."""
    head = text[:HEAD]
    if "\0" in head:
        return BINARY
    return GENERATED if _SAYS_GENERATED.search("\n".join(head.splitlines()[:10])) else None
