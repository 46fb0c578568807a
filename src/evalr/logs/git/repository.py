"""A repository's objects, read by the git program from beside the repository, so that nothing in it is run or changed.

git is given a directory of its own with an empty configuration, and only borrows the repository's objects: no hook, no
configured command and no fetch can be reached from there, and what is missing is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from evalr.errors import InputError, LogError
from evalr.logs.finding import unreadable
from evalr.quoting import quoted, safe_text

CHUNK = 1 << 16

HASH = re.compile(r"[0-9a-fA-F]{40}(?:[0-9a-fA-F]{24})?")
ANY_REVISION = re.compile(r"[0-9a-fA-F]{4,64}")

CONFIGURATION = """\
[core]
	repositoryformatversion = {version}
	bare = true
	packedGitWindowSize = 1m
	packedGitLimit = 32m
	deltaBaseCacheLimit = 16m
[trailer "coauthor"]
	key = Co-authored-by
"""
"""A pack is not held in memory whole. With its key known, a trailer is found also where other lines stand beside it."""

SHA256 = "[extensions]\n\tobjectformat = sha256\n"


class Places(NamedTuple):
    """Where a repository keeps what is read of it."""

    git: Path
    """Of this work tree: it has the HEAD."""
    common: Path
    """Of all its work trees: it has the objects and the branches."""


def find_places(path: Path) -> Places | None:
    """Where the repository at `path` (a work tree's root, or a bare repository) keeps its things; None for none."""
    git = path / ".git"
    if _is_file(git):
        pointer = _first_line(git)
        if not pointer.startswith("gitdir: "):
            return None
        git = path / pointer.removeprefix("gitdir: ")
    elif not _is_directory(git):
        git = path
    if not _is_file(git / "HEAD"):
        return None
    pointer = _first_line(git / "commondir")
    common = git / pointer if pointer else git
    return Places(git, common) if _is_directory(common / "objects") else None


def repository_around(path: Path) -> Path | None:
    """The repository that a directory is inside of, if it is inside of one."""
    return next((parent for parent in path.resolve().parents if find_places(parent) is not None), None)


def _first_line(path: Path) -> str:
    """Without its end; empty where there is no such file."""
    return next(_lines(path), "").rstrip("\r\n")


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, as far as they are of a length to read; none where there is no such file."""
    if not _is_file(path):
        return
    try:
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            while line := file.readline(CHUNK):
                yield line
    except OSError as error:
        raise unreadable(path, error) from error


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False  # its name is too long, or one may not look for it


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


class Repository:
    """One repository, for reading. `run` gives what a git command prints; `close` takes its scratch directory away.

    Raises:
        LogError: there is no git program, or no repository at `path`.
    """

    def __init__(self, path: Path) -> None:
        # Not from where a relative entry of PATH leads: that may be the repository itself.
        folders = (entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute())
        program, places = shutil.which("git", path=os.pathsep.join(folders)), find_places(path)
        if program is None:
            raise LogError(f"{path}: reading a repository needs the program git, and none is installed")
        if places is None:
            around = repository_around(path)
            meant = "the directory that holds its .git" if around is None else f"{around}, which it is inside of"
            raise LogError(f"{path} is not a git repository: give {meant}")
        self.path = path
        self._git = program
        self._places = places
        try:
            self.scratch = Path(tempfile.mkdtemp(prefix="evalr-git-"))
        except OSError as error:
            raise LogError(
                f"{path}: git needs a directory for temporary files, and none can be made: {error}"
            ) from error
        self.close = weakref.finalize(self, _take_away, self.scratch, os.getpid())
        (self.scratch / "refs").mkdir()
        sha256 = self._is_sha256()
        configuration = CONFIGURATION.format(version=int(sha256)) + (SHA256 if sha256 else "")
        (self.scratch / "config").write_text(configuration, encoding="utf-8")
        (self.scratch / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
        edge = (line.strip() for line in _lines(places.common / "shallow"))
        self.boundary = frozenset(name for name in edge if HASH.fullmatch(name))
        if self.boundary:
            (self.scratch / "shallow").write_text("".join(f"{name}\n" for name in self.boundary), encoding="utf-8")
        self.environment = self._environment()

    def _is_sha256(self) -> bool:
        config = self._places.common / "config"
        if not _is_file(config):
            return False
        # A file is only parsed here: nothing in it is followed.
        command = [self._git, "config", "--file", str(config.resolve()), "--no-includes", "extensions.objectformat"]
        done = subprocess.run(command, env=self._environment(), cwd=self.scratch, capture_output=True, check=False)
        return done.stdout.strip().lower() == b"sha256"

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        own = {
            "GIT_DIR": str(self.scratch),
            "GIT_OBJECT_DIRECTORY": str((self._places.common / "objects").resolve()),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "HOME": str(self.scratch),
            "XDG_CONFIG_HOME": str(self.scratch),
            "LC_ALL": "C",
        }
        return kept | own

    # -- running git --------------------------------------------------------------------------------------------------

    def popen(
        self, arguments: Sequence[str], *, given: IO[bytes] | int, errors: IO[bytes] | int
    ) -> subprocess.Popen[bytes]:
        """Git as a process, in its scratch directory."""
        return subprocess.Popen(
            [self._git, *arguments],
            env=self.environment,
            cwd=self.scratch,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=errors,
        )

    def run(self, *arguments: str, given: Iterable[bytes] = ()) -> Iterator[bytes]:
        """The fields, each ended by a NUL, that a git command prints; `given` are the pieces of its input.

        Raises:
            LogError: git failed, in its words.
        """
        with tempfile.TemporaryFile(dir=self.scratch) as input_file, tempfile.TemporaryFile(dir=self.scratch) as errors:
            input_file.writelines(given)
            input_file.seek(0)
            with self.popen(arguments, given=input_file, errors=errors) as process:
                assert process.stdout is not None
                try:
                    yield from _fields(process.stdout)
                except BaseException:
                    process.kill()
                    raise
            if process.returncode:
                errors.seek(0)
                words = errors.read(CHUNK).decode(errors="replace").strip()
                raise LogError(f"{self.path}: git cannot read this repository: {safe_text(words, longest=500)}")

    def answers(self, *arguments: str, given: Iterable[str]) -> list[bytes]:
        """The lines that a git command prints, one for each line of its input.

        Raises:
            LogError: git failed, in its words.
        """
        return b"".join(self.run(*arguments, given=(f"{line}\n".encode() for line in given))).splitlines()

    @property
    def on_branch(self) -> bool:
        """Whether its HEAD is a branch, and not a commit by itself."""
        return _first_line(self._places.git / "HEAD").startswith("ref: ")

    # -- what there is ------------------------------------------------------------------------------------------------

    def commit(self, revision: str) -> str:
        """The hash of the commit that a branch, a tag or a hash names.

        Raises:
            LogError: there are no commits yet.
            InputError: nothing has that name.
        """
        found = self._resolved(revision)
        if found is None and _is_directory(self._places.common / "reftable"):
            raise LogError(f"{self.path} keeps its branches in a reftable: give the hash of a commit as rev=")
        if found is None and revision == "HEAD":
            raise LogError(f"{self.path}: its HEAD has no commit yet; give another branch as rev=, or make one")
        if found is not None:
            for name in self._peeled(found):
                return name.decode()
        if revision == "HEAD":
            raise LogError(f"{self.path}: the commit {found} of its HEAD is missing, or no commit; see git fsck")
        raise InputError(
            f"{self.path}: no commit is named {quoted(revision)}; give a branch, a tag or a commit's hash as rev="
        )

    def files(self, commit: str) -> dict[bytes, bytes]:
        """The files of a commit, by path, each with its blob; links and submodules are none."""
        found = {}
        for entry in self.run("ls-tree", "-r", "-z", "--full-tree", commit):
            head, _, path = entry.partition(b"\t")
            mode, _, blob = head.split(b" ")
            if mode.startswith(b"100"):
                found[path] = blob
        return found

    def _peeled(self, found: str) -> list[bytes]:
        try:
            return [name.strip() for name in self.run("rev-parse", "--verify", "--quiet", f"{found}^{{commit}}")]
        except LogError:
            return []

    def _resolved(self, revision: str) -> str | None:
        """The hash of what is named, which may be a tag's own."""
        tried = (
            ["HEAD"]
            if revision == "HEAD"
            else [f"{folder}{revision}" for folder in ("", "refs/heads/", "refs/tags/", "refs/remotes/")]
        )
        for name in tried:
            found = self._reference(name, depth=5)
            if found is not None:
                return found
        return revision if ANY_REVISION.fullmatch(revision) else None

    def _reference(self, name: str, depth: int) -> str | None:
        if name != "HEAD" and (not name.startswith("refs/") or ".." in name):
            return None
        line = ""
        for folder in dict.fromkeys((self._places.git, self._places.common)):
            line = line or _first_line(folder / name)
        if line.startswith("ref: ") and depth:
            return self._reference(line.removeprefix("ref: ").strip(), depth - 1)
        return line.strip() if HASH.fullmatch(line.strip()) else self._packed().get(name)

    def _packed(self) -> Mapping[str, str]:
        pairs = (line.split() for line in _lines(self._places.common / "packed-refs") if line[:1] not in "#^")
        return {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and HASH.fullmatch(pair[0])}


def _take_away(scratch: Path, owner: int) -> None:
    if owner == os.getpid():  # a forked process has none of its own
        shutil.rmtree(scratch, ignore_errors=True)


def _fields(file: IO[bytes]) -> Iterator[bytes]:
    """The fields of a stream, each ended by a NUL; what follows the last one is a field where it is not empty."""
    pieces: list[bytes] = []  # of a field that is longer than what is read at once
    while chunk := file.read(CHUNK):
        first, *others = chunk.split(b"\0")
        pieces.append(first)
        if others:
            yield b"".join(pieces)
            yield from others[:-1]
            pieces = [others[-1]]
    if rest := b"".join(pieces):
        yield rest
