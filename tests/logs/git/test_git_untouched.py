"""Reading a repository runs nothing of it, fetches nothing, writes nothing there, and leaves nothing behind."""

from __future__ import annotations

import os
import shlex
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from repositories import AGENT, ENVIRONMENT, HOUR, PERSON, Repo, Story, git, histories, init, told

from evalr.errors import LogError, RecordError
from evalr.logs.git import changes, reader

A, P, S = "agent", "person", "system"
LONG = "".join(f"line {number} of the first text, {number * 7}\n" for number in range(40))


def some_story() -> Story:
    """An agent's work with people's after it, a rename with edits, a merge, attributes and a list of formattings."""
    story = Story()
    story.commit({"a.py": LONG, ".gitattributes": "* diff=mine filter=mine merge=mine text=auto\n"}, by=AGENT)
    base = story.commit({"a.py": None, "b.py": LONG + "more\n", ".git-blame-ignore-revs": "# none\n"})
    left = story.commit({"b.py": LONG + "more and more\n"}, by=AGENT, after=[base])
    right = story.commit({"c.py": "1\n"}, by=AGENT, after=[base])
    story.commit({"c.py": "1\n"}, after=[left, right])
    story.commit({"b.py": LONG, "c.py": "2\n"})
    return story


EXPECTED = {
    "b.py": [(A, LONG), (P, LONG + "more\n"), (A, LONG + "more and more\n"), (P, LONG)],
    "c.py": [(A, "1\n"), (P, "2\n")],
    ".gitattributes": [(A, "* diff=mine filter=mine merge=mine text=auto\n")],
}


def texts(path: Path, **settings: str) -> dict[str, list[tuple[str, str]]]:
    return {str(history.attributes["path"]): told(history) for history in histories(reader.open(path, **settings))}  # type: ignore[arg-type]


def picture(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """All files and directories: when each was changed, its mode, size and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
        found[str(path.relative_to(folder))] = (state.st_mtime_ns, state.st_mode, state.st_size, content)
    return found


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What would be written if anything of a repository were run."""
    return tmp_path / "marker"


def command(marker: Path) -> str:
    return f"echo ran >> {shlex.quote(str(marker))} #"


HOOKS = (
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-rewrite",
    "pre-auto-gc",
    "pre-commit",
    "reference-transaction",
    "fsmonitor-watchman",
)


def boobytrap(repo: Repo, marker: Path) -> None:
    """Set everything in a repository that could make git run a command."""
    run = command(marker)
    script = f"#!/bin/sh\n{run}\n"
    hooks = repo.path / "hooks"
    for folder in (hooks, repo.path / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(script)
            (folder / name).chmod(0o755)
    program = repo.path / "trap.sh"
    program.write_text(script)
    program.chmod(0o755)
    more = repo.path / "more.config"
    more.write_text(f'[core]\n\tpager = "{program}"\n[alias]\n\tlog = "!{program}"\n')
    settings = {
        "core.fsmonitor": str(program),
        "core.hooksPath": str(hooks),
        "core.pager": str(program),
        "core.sshCommand": str(program),
        "core.gitProxy": str(program),
        "core.askPass": str(program),
        "core.editor": str(program),
        "core.alternateRefsCommand": str(program),
        "pager.log": "true",
        "diff.external": str(program),
        "diff.mine.command": str(program),
        "diff.mine.textconv": str(program),
        "filter.mine.process": str(program),
        "filter.mine.smudge": str(program),
        "filter.mine.clean": str(program),
        "filter.mine.required": "true",
        "merge.mine.driver": str(program),
        "alias.diff-tree": f"!{program}",
        "alias.log": f"!{program}",
        "include.path": str(more),
        "includeIf.gitdir:/.path": str(more),
        "credential.helper": f"!{program}",
        "gpg.program": str(program),
        "log.showSignature": "true",
        "trailer.mine.command": str(program),
        "trailer.mine.cmd": str(program),
        "uploadpack.packObjectsHook": str(program),
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "remote.origin.partialclonefilter": "blob:none",
        "remote.origin.uploadpack": str(program),
        "protocol.ext.allow": "always",
        "protocol.allow": "always",
        "gc.auto": "1",
        "maintenance.auto": "true",
        "core.attributesFile": str(more),
        "core.worktree": str(repo.path),
    }
    config = repo.path / ".git" / "config"
    repo.git("config", "core.repositoryFormatVersion", "1")
    for name, value in settings.items():
        git(repo.path.parent, "config", "--file", str(config), name, value)
    (repo.path / ".git" / "info").mkdir(exist_ok=True)
    (repo.path / ".git" / "info" / "attributes").write_text("* diff=mine filter=mine\n")


def test_the_trap_itself_works(tmp_path: Path, marker: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    boobytrap(repo, marker)
    repo.git("log", "-p", "--ext-diff", check=False)
    assert marker.exists()


@pytest.mark.parametrize("missing", [False, True])
def test_nothing_of_a_repository_is_run_or_written(tmp_path: Path, marker: Path, missing: bool) -> None:
    repo = some_story().write(tmp_path / "repo")
    lost = repo.git("rev-parse", "HEAD~1:c.py").decode().strip()
    if missing:
        (repo.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    boobytrap(repo, marker)
    before = picture(repo.path)
    found = texts(repo.path)
    assert not marker.exists()
    assert picture(repo.path) == before
    assert found == ({name: EXPECTED[name] for name in EXPECTED if name != "c.py"} if missing else EXPECTED)


def test_a_packed_repository_is_not_written_to(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    repo.git("gc", "--quiet")
    repo.git("commit-graph", "write")
    repo.git("multi-pack-index", "write")
    assert not (repo.path / ".git" / "refs" / "heads" / "main").exists()
    before = picture(repo.path)
    assert texts(repo.path) == EXPECTED
    assert picture(repo.path) == before


# The caller's surroundings


def test_the_callers_environment_does_not_leak_in(
    tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Story()
    other.commit({"other.py": "other\n"}, by=AGENT)
    elsewhere = other.write(tmp_path / "elsewhere").path / ".git"
    repo = some_story().write(tmp_path / "repo")
    program = tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\n{command(marker)}\n")
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    config = (
        f"[core]\n\tpager = {program}\n\tquotePath = true\n[diff]\n\texternal = {program}\n\torderFile = /no/such\n"
    )
    config += '[log]\n\tshowSignature = true\n[trailer]\n\tseparators = "%"\n[diff]\n\trenames = false\n'
    (home / ".gitconfig").write_text(config)
    trace = tmp_path / "trace"
    surroundings = {
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "GIT_DIR": elsewhere,
        "GIT_WORK_TREE": elsewhere.parent,
        "GIT_INDEX_FILE": elsewhere / "index",
        "GIT_OBJECT_DIRECTORY": elsewhere / "objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": elsewhere / "objects",
        "GIT_COMMON_DIR": elsewhere,
        "GIT_NAMESPACE": "other",
        "GIT_EXTERNAL_DIFF": program,
        "GIT_PAGER": program,
        "GIT_SSH_COMMAND": program,
        "GIT_ASKPASS": program,
        "GIT_TRACE": trace,
        "GIT_TRACE2_EVENT": trace,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "diff.external",
        "GIT_CONFIG_VALUE_0": program,
        "GIT_CONFIG_PARAMETERS": f"'diff.external={program}'",
        "GIT_CONFIG_GLOBAL": home / ".gitconfig",
        "GIT_SHALLOW_FILE": home / "none",
        "GIT_GRAFT_FILE": home / "none",
        "GIT_DIFF_OPTS": "-u0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_DEFAULT_HASH": "sha256",
        "LC_ALL": "de_DE.UTF-8",
        "LANGUAGE": "de",
    }
    for name, value in surroundings.items():
        monkeypatch.setenv(name, str(value))
    assert texts(repo.path) == EXPECTED
    assert not marker.exists()
    assert not trace.exists()


def test_it_reads_from_within_a_hook(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    code = "import sys; from evalr.logs.git import reader; from pathlib import Path; "
    code += "log = reader.open(Path(sys.argv[1])); print(len(list(log)), log.records)"
    hook = repo.path / ".git" / "hooks" / "post-commit"
    words = [sys.executable, "-W", "error", "-c", code, str(repo.path)]
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{shlex.join(words)} > {shlex.quote(str(tmp_path / 'told'))} 2>&1\n")
    hook.chmod(0o755)
    repo.git("reset", "--hard", "--quiet")
    repo.git("commit", "--allow-empty", "-m", "Set it off", PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    assert (tmp_path / "told").read_text() == "3 9\n"


def test_without_a_place_for_temporary_files_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = some_story().write(tmp_path / "repo")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(LogError, match="temporary files"):
        list(repo.log())


def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = some_story().write(tmp_path / "repo")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LogError, match="needs the program git"):
        list(repo.log())


# Clones that lack something


def clone(tmp_path: Path, *options: str, story: Story | None = None, checkout: bool = True) -> Path:
    """A clone from a remote that is gone afterwards, whose upload-pack would tell that it was asked."""
    origin = (story or some_story()).write(tmp_path / "origin")
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.git("config", "uploadpack.allowAnySHA1InWant", "true")
    more = [] if checkout else ["--no-checkout"]
    git(tmp_path, "clone", "--quiet", *options, *more, f"file://{origin.path}", "clone")
    told_of = tmp_path / "asked"
    trap = tmp_path / "upload-pack"
    trap.write_text(f'#!/bin/sh\n{command(told_of)}\nexec git-upload-pack "$@"\n')
    trap.chmod(0o755)
    git(tmp_path / "clone", "config", "remote.origin.uploadpack", str(trap))
    return tmp_path / "clone"


def not_asked(tmp_path: Path) -> bool:
    return not (tmp_path / "asked").exists()


def test_the_trap_of_clones_works(tmp_path: Path) -> None:
    path = clone(tmp_path, "--filter=blob:none", checkout=False)
    git(path, "show", "HEAD:c.py")
    assert not not_asked(tmp_path)


def test_a_shallow_clone_is_named_before_any_other_advice(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "1\n"}, by=AGENT)
    story.commit({"a.py": "2\n"})
    origin = story.write(tmp_path / "origin")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{origin.path}", "clone")
    log = reader.open(tmp_path / "clone")
    assert list(log) == []
    assert "the clone is shallow" in log.notes[1]
    assert "fetch-depth: 0" in log.notes[1]
    assert "by an agent that is known here" in log.notes[2]


@pytest.mark.parametrize(
    ("depth", "expected", "left_out"),
    [
        (5, [(A, "1\n"), (P, "2\n"), (A, "3\n"), (P, "4\n")], {}),
        (4, [(P, "2\n"), (A, "3\n"), (P, "4\n")], {"commit at the edge of a shallow clone": 1}),
        (3, [(S, "2\n"), (A, "3\n"), (P, "4\n")], {}),
        (2, [], {"commit at the edge of a shallow clone": 1, "where no agent's text is followed": 1}),
        (1, [], {}),
    ],
)
def test_a_shallow_clone_counts_an_agents_work_at_its_edge(
    tmp_path: Path, depth: int, expected: list[tuple[str, str]], left_out: dict[str, int]
) -> None:
    story = Story()
    for number in range(1, 5):
        story.commit({"a.py": f"{number}\n"}, by=AGENT if number % 2 else PERSON)
    path = clone(tmp_path, f"--depth={depth}", story=story)
    before = picture(path)
    log = reader.open(path, strict=True)
    assert [told(history) for history in histories(log)] == ([expected] if expected else [])
    assert log.left_out.counts == left_out
    assert picture(path) == before
    assert not_asked(tmp_path)


def test_a_blobless_clone_counts_what_is_missing(tmp_path: Path) -> None:
    path = clone(tmp_path, "--filter=blob:none")
    before = picture(path)
    log = reader.open(path)
    found = {str(history.attributes["path"]): told(history) for history in histories(log)}
    assert not_asked(tmp_path)
    assert picture(path) == before
    assert found == {".gitattributes": EXPECTED[".gitattributes"], "a.py": [(A, LONG)]}
    assert log.left_out.counts == {"missing object": 4, "merge commit": 1, "where no agent's text is followed": 3}
    assert any("objects are missing" in note for note in log.notes)
    with pytest.raises(RecordError, match="missing object"):
        list(reader.open(path, strict=True))
    assert not_asked(tmp_path)


def test_a_blobless_clone_follows_renames_that_left_the_text(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": LONG, "old.py": "1\n"}, by=AGENT)
    story.commit({"old.py": None, "new.py": LONG.upper()})
    story.commit({"a.py": None, "b.py": LONG})
    path = clone(tmp_path, "--filter=blob:none", story=story)
    found = texts(path)
    assert found == {"b.py": [(A, LONG)]}
    assert not_asked(tmp_path)


@pytest.mark.parametrize("most", [3, 50])
def test_a_blobless_clone_with_many_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(changes, "MOST_FAILURES_OF_RENAMES", most)
    story = Story()
    story.commit({"0.py": LONG, "kept.py": "1\n"}, by=AGENT)
    for number in range(12):
        story.commit({f"{number}.py": None, f"{number + 1}.py": LONG + "more\n" * number})
    story.commit({"kept.py": None, "moved.py": "1\n"})
    path = clone(tmp_path, "--filter=blob:none", story=story)
    log = reader.open(path)
    found = {str(history.attributes["path"]): told(history) for history in histories(log)}
    assert found["moved.py"] == [(A, "1\n")]
    assert log.left_out.counts["missing object"] >= 1
    assert all(role != P for lines in found.values() for role, _ in lines)
    assert not_asked(tmp_path)


def test_what_fails_again_and_again_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    for number in range(6):
        story.commit({"d/a.py": f"{number}\n"}, by=AGENT)
    repo = story.write(tmp_path / "repo")
    for number in range(1, 5):
        tree = repo.git("rev-parse", f"{repo.hashes[number]}:d").decode().strip()
        (repo.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    log = repo.log()
    [history] = histories(log)
    assert told(history) == [(S, "4\n"), (A, "5\n")]
    assert log.left_out.counts == {"missing object": 5}
    monkeypatch.setattr(changes, "MOST_FAILURES", 2)
    with pytest.raises(LogError, match="git cannot read this repository"):
        list(repo.log())


def test_a_blobless_clone_may_lack_its_list_of_formattings(tmp_path: Path) -> None:
    path = clone(tmp_path, "--filter=blob:none", checkout=False)
    log = reader.open(path)
    assert histories(log) == []
    assert log.left_out.counts["missing object"] >= 4
    assert not_asked(tmp_path)


def test_a_treeless_clone_counts_its_commits(tmp_path: Path) -> None:
    path = clone(tmp_path, "--filter=tree:0")
    before = picture(path)
    log = reader.open(path)
    assert histories(log) == []
    assert log.left_out.counts == {"missing object": 5, "merge commit": 1}
    assert not_asked(tmp_path)
    assert picture(path) == before
    with pytest.raises(RecordError, match="missing object"):
        list(reader.open(path, strict=True))


def test_a_treeless_clone_that_knows_nothing_of_its_tip(tmp_path: Path) -> None:
    path = clone(tmp_path, "--filter=tree:0", checkout=False)
    log = reader.open(path)
    assert histories(log) == []
    assert log.left_out.counts["missing object"] == 5
    assert not_asked(tmp_path)


def test_directories_of_the_tip_that_are_missing(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "1\n", "d/b.py": "1\n"}, by=AGENT)
    story.commit({"a.py": "2\n"})
    last = story.commit({"d/b.py": "2\n"})
    repo = story.write(tmp_path / "repo")
    tree = repo.git("rev-parse", f"{repo.hashes[last]}:d").decode().strip()
    (repo.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    log = repo.log()
    found = {str(history.attributes["path"]): history for history in histories(log)}
    assert told(found["a.py"]) == [(A, "1\n"), (P, "2\n")]
    assert found["a.py"].read_at == found["a.py"].revisions[-1].at
    assert log.left_out.counts == {"missing object": 3}
    assert any("nothing is known to stand" in note for note in log.notes)


def test_a_sparse_partial_clone(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "1\n", "deep/b.py": "2\n"}, by=AGENT)
    story.commit({"deep/b.py": "3\n"})
    path = clone(tmp_path, "--filter=blob:none", "--sparse", story=story)
    log = reader.open(path)
    found = {str(history.attributes["path"]): told(history) for history in histories(log)}
    assert found == {"a.py": [(A, "1\n")]}
    assert log.left_out.counts["missing object"] == 2
    assert not_asked(tmp_path)


def test_many_commits_without_trees_are_counted_at_once(tmp_path: Path) -> None:
    story = Story()
    for number in range(400):
        story.commit({"a.py": f"{number}\n"}, by=AGENT)
    path = clone(tmp_path, "--filter=tree:0", story=story)
    log = reader.open(path)
    assert histories(log) == []
    assert log.left_out.counts == {"missing object": 400}


# What is left behind


def scratch() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("evalr-git-*")}


def descriptors() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").glob("*")}


def children() -> set[str]:
    tasks = Path(f"/proc/{os.getpid()}/task")
    return {word for task in tasks.glob("*/children") for word in task.read_text().split()} if tasks.is_dir() else set()


def fully(repo: Repo) -> None:
    for history in histories(repo.log()):
        for draft in history.each_draft():
            assert draft.text is not None


def half_way(repo: Repo) -> None:
    items = iter(repo.log())
    assert len(told(next(items))) > 0  # type: ignore[arg-type]


def closed(repo: Repo) -> None:
    items = iter(repo.log())
    next(items)
    items.close()  # type: ignore[attr-defined]


def on_an_error(repo: Repo) -> None:
    with pytest.raises(RecordError):
        list(repo.log(strict=True))


def on_a_bad_revision(repo: Repo) -> None:
    with pytest.raises(Exception, match="no commit is named"):
        list(repo.log(rev="nowhere"))


@pytest.mark.parametrize("reads", [fully, half_way, closed, on_an_error, on_a_bad_revision])
def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: Callable[[Repo], None]) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    story = some_story()
    if reads is on_an_error:
        story.commit({"c.py": "odd\n"}, by="<>")
    repo = story.write(tmp_path / "repo")
    before = descriptors(), children()
    reads(repo)
    assert scratch() == set()
    assert (descriptors(), children()) == before


@pytest.mark.parametrize("at", ["log", "diff-tree", "cat-file", "check-attr"])
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    repo = some_story().write(tmp_path / "repo")
    before = descriptors(), children()
    real = subprocess.Popen.__init__
    interrupted = []

    def begin(self: subprocess.Popen[bytes], arguments: list[str], **options: object) -> None:
        real(self, arguments, **options)  # type: ignore[call-overload]
        if at in arguments and not interrupted:
            interrupted.append(at)
            stdout = self.stdout
            assert stdout is not None
            self.stdout = _Interrupted(stdout)  # type: ignore[assignment]

    monkeypatch.setattr(subprocess.Popen, "__init__", begin)
    with pytest.raises(KeyboardInterrupt):
        list(repo.log())
    monkeypatch.undo()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert interrupted == [at]
    assert scratch() == set()
    assert (descriptors(), children()) == before


class _Interrupted:
    """A stream at whose first reading somebody presses Ctrl-C."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        raise KeyboardInterrupt

    def __getattr__(self, name: str) -> object:
        return self.read if name == "readline" else getattr(self._stream, name)


BEGIN = """\
import os, sys, threading
from pathlib import Path
from evalr.logs.git import reader

path = Path(sys.argv[1])

def tell(history):
    assert history.revisions[0].text
    print(history.revisions[0].role)

"""
ENDS = {
    "read": "kept = list(reader.open(path)); tell(kept[0])",
    "half way": "items = iter(reader.open(path)); tell(next(items))",
    "never begun": "log = reader.open(path); print('agent')",
    "exit": "items = iter(reader.open(path)); tell(next(items)); sys.exit()",
    "in a thread": "kept = list(reader.open(path)); threading.Thread(target=tell, args=(kept[0],)).start()",
    "in a fork": """\
kept = list(reader.open(path))
tell(kept[0])
sys.stdout.flush()
forked = os.fork()
if forked == 0:
    assert kept[1].revisions[0].text
    sys.exit()
assert os.waitpid(forked, 0)[1] == 0
assert kept[2].revisions[-1].text
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_the_interpreter_ends_cleanly(tmp_path: Path, end: str) -> None:
    repo = some_story().write(tmp_path / "repo")
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", BEGIN + ENDS[end], str(repo.path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "agent\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["repo"]


def test_two_readings_at_once(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    pairs = list(zip(repo.log(), repo.log(), strict=True))
    assert len(pairs) == len(EXPECTED)
    assert all(one == other for one, other in pairs)


def test_a_repository_may_grow_in_between(tmp_path: Path) -> None:
    repo = some_story().write(tmp_path / "repo")
    found = {str(history.attributes["path"]): history for history in histories(repo.log())}  # type: ignore[union-attr]
    story = some_story()
    story.commit({"c.py": "3\n"}, at=story.at + HOUR)
    story.write(repo.path)
    repo.git("gc", "--quiet", "--prune=now")
    assert {path: told(history) for path, history in found.items()} == EXPECTED


def test_an_empty_work_tree_of_a_clone_needs_no_checkout(tmp_path: Path) -> None:
    path = clone(tmp_path, checkout=False)
    assert texts(path) == EXPECTED
    assert init(tmp_path / "other").is_dir()
