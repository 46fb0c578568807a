"""Repositories in every shape that git allows, or that damage leaves, and names, texts and people of every kind."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repositories import AGENT, PERSON, TRAILER, Repo, Story, git, histories, init, told

from evalr.errors import InputError, LogError
from evalr.logs import find_reader
from evalr.logs import read as read_log
from evalr.logs.git import reader
from evalr.measures import measure_retention, measure_rewrites

A, P, S = "agent", "person", "system"
FOUND = [(A, "1\n"), (P, "2\n")]


def simple() -> Story:
    story = Story()
    story.commit({"a.py": "1\n"}, by=AGENT)
    story.commit({"a.py": "2\n"})
    return story


def texts(path: Path, **settings: object) -> list[list[tuple[str, str]]]:
    return [told(history) for history in histories(reader.open(path, **settings))]  # type: ignore[arg-type]


# What is no repository


def make_nothing(path: Path) -> None:
    """There is nothing at all."""


def make_a_file(path: Path) -> None:
    path.write_text("ref: refs/heads/main\n")


def make_an_empty_directory(path: Path) -> None:
    path.mkdir()


def make_a_pointer_to_nowhere(path: Path) -> None:
    path.mkdir()
    (path / ".git").write_text("gitdir: ../nowhere\n")


def make_an_odd_pointer(path: Path) -> None:
    path.mkdir()
    (path / ".git").write_bytes(b"\0\xff not a pointer")


def make_an_empty_git(path: Path) -> None:
    (path / ".git").mkdir(parents=True)


def make_a_head_alone(path: Path) -> None:
    (path / ".git").mkdir(parents=True)
    (path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize(
    "make",
    [
        make_nothing,
        make_a_file,
        make_an_empty_directory,
        make_a_pointer_to_nowhere,
        make_an_odd_pointer,
        make_an_empty_git,
        make_a_head_alone,
    ],
)
def test_what_is_no_repository_is_not_claimed_and_not_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "it"
    make(path)
    assert reader.claim(path, b"") == 0
    with pytest.raises(LogError, match="is not a git repository"):
        list(reader.open(path))


@pytest.mark.parametrize("arguments", [(), ("--bare",)])
def test_a_repository_without_commits_says_so(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    path = init(tmp_path / "repo", *arguments)
    assert reader.claim(path, b"") == 1
    with pytest.raises(LogError, match="HEAD has no commit"):
        list(reader.open(path))


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/none\n",
        "ref: ../../../outside\n",
        "ref: refs/heads/../../../../outside\n",
        "ref: /etc/hostname\n",
        "ref: HEAD\n",
        "",
        "\0\xff\n",
        "ref: refs/heads/" + "x" * 5000,
        "deadbeef\n",
    ],
)
def test_a_broken_head_is_told_of(tmp_path: Path, head: str) -> None:
    repo = simple().write(tmp_path / "repo")
    (tmp_path / "outside").write_text(repo.hashes[1] + "\n")
    (repo.path / ".git" / "HEAD").write_text(head, encoding="latin-1")
    with pytest.raises(LogError, match="HEAD"):
        list(repo.log())
    assert texts(repo.path, rev="main") == [FOUND]


def test_a_head_at_what_is_missing_or_no_commit(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    blob = repo.git("rev-parse", "HEAD:a.py").decode()
    for name in ("1" * 40 + "\n", blob):
        (repo.path / ".git" / "HEAD").write_text(name)
        with pytest.raises(LogError, match="HEAD is missing, or no commit"):
            list(repo.log())


# Where a repository may keep things


def test_a_bare_repository(tmp_path: Path) -> None:
    assert texts(simple().write(tmp_path / "repo.git", "--bare").path) == [FOUND]


def test_a_detached_head(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    repo.git("checkout", "--quiet", "--detach", repo.hashes[1])
    assert texts(repo.path) == [[(A, "1\n")]]


def test_packed_references_and_objects(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    repo.git("tag", "-a", "v1", "-m", "The first", repo.hashes[1])
    repo.git("gc", "--quiet")
    repo.git("pack-refs", "--all")
    assert not list((repo.path / ".git" / "refs").rglob("v1"))
    assert texts(repo.path) == [FOUND]
    assert texts(repo.path, rev="v1") == [[(A, "1\n")]]


def test_a_work_tree_of_its_own(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    repo.git("worktree", "add", "--quiet", str(tmp_path / "tree"), repo.hashes[1])
    repo.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "branch"), repo.hashes[1])
    assert texts(tmp_path / "tree") == [[(A, "1\n")]]
    assert texts(tmp_path / "branch") == [[(A, "1\n")]]
    assert texts(tmp_path / "branch", rev="main") == [FOUND]


def test_a_submodule_is_a_repository(tmp_path: Path) -> None:
    inner = simple().write(tmp_path / "inner")
    outer = Story()
    outer.commit({"b.py": "outer\n"}, by=AGENT)
    repo = outer.write(tmp_path / "outer")
    repo.git("reset", "--quiet", "--hard")
    repo.git("submodule", "--quiet", "add", f"file://{inner.path}", "lib")
    assert (repo.path / "lib" / ".git").is_file()
    assert texts(repo.path / "lib") == [FOUND]


def test_objects_that_another_repository_holds(tmp_path: Path) -> None:
    simple().write(tmp_path / "repo")
    for name, options in (("shared", ("--shared",)), ("linked", ("--shared", "--bare"))):
        git(tmp_path, "clone", "--quiet", *options, str(tmp_path / "repo"), name)
    alternates = tmp_path / "shared" / ".git" / "objects" / "info" / "alternates"
    assert alternates.is_file()
    assert texts(tmp_path / "shared") == [FOUND]
    alternates.write_text("../../../repo/.git/objects\n")
    assert texts(tmp_path / "shared") == [FOUND]
    assert texts(tmp_path / "linked") == [FOUND]


def test_a_sha256_repository(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo", "--object-format=sha256")
    assert len(repo.hashes[1]) == 64
    assert texts(repo.path) == [FOUND]
    assert texts(repo.path, rev=repo.hashes[1]) == [[(A, "1\n")]]


def test_replacements_and_grafts_change_nothing(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    other = Story()
    other.commit({"a.py": "another past\n"})
    elsewhere = other.write(tmp_path / "other")
    repo.git("fetch", "--quiet", str(elsewhere.path), "main:past")
    repo.git("replace", repo.hashes[1], elsewhere.hashes[1])
    blobs = [repo.git("rev-parse", name).decode().strip() for name in (f"{repo.hashes[2]}:a.py", "past:a.py")]
    repo.git("replace", *blobs)
    (repo.path / ".git" / "info").mkdir(exist_ok=True)
    (repo.path / ".git" / "info" / "grafts").write_text(f"{repo.hashes[2]}\n")
    assert texts(repo.path) == [FOUND]


def test_a_reftable_is_named(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    (repo.path / ".git" / "reftable").mkdir()
    (repo.path / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    with pytest.raises(LogError, match="reftable"):
        list(repo.log())
    assert texts(repo.path, rev=repo.hashes[2]) == [FOUND]


@pytest.mark.parametrize(
    "name", [b"with blank", b"two\nlines", b"caf\xe9", b"--upload-pack=x", b"-C", b"{0} %s", b"a:b;c"]
)
def test_a_directory_of_any_name(tmp_path: Path, name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = simple().write(tmp_path / "repo")
    path = tmp_path / os.fsdecode(name)
    shutil.copytree(repo.path, path)
    assert texts(path) == [FOUND]
    monkeypatch.chdir(tmp_path)
    assert texts(Path(os.fsdecode(name))) == [FOUND]
    assert texts(Path(os.fsdecode(name)).absolute().parent / "repo" / ".." / path.name) == [FOUND]
    assert find_reader(path).name == "git"


def test_a_link_to_a_repository(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    (tmp_path / "link").symlink_to("repo")
    assert texts(tmp_path / "link") == [FOUND]
    shutil.move(repo.path / ".git" / "objects", tmp_path / "objects")
    (repo.path / ".git" / "objects").symlink_to(tmp_path / "objects")
    assert texts(tmp_path / "link") == [FOUND]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("place", [".git", ".git/HEAD", ".git/objects", ".git/refs/heads/main"])
def test_what_may_not_be_read_is_told_of(tmp_path: Path, place: str) -> None:
    repo = simple().write(tmp_path / "repo")
    (repo.path / place).chmod(0)
    try:
        with pytest.raises(LogError):
            list(repo.log())
        with pytest.raises(LogError):
            list(read_log(repo.path))
    finally:
        (repo.path / place).chmod(0o755)


# The commit to read to


def test_a_revision_by_every_name(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    first, second = repo.hashes[1], repo.hashes[2]
    repo.git("branch", "side", first)
    repo.git("branch", "deep/er", first)
    repo.git("branch", "abcdef", first)
    repo.git("tag", "light", first)
    repo.git("tag", "-a", "heavy", "-m", "A tag", first)
    repo.git("tag", "-a", "heavier", "-m", "A tag of a tag", "heavy")
    repo.git("update-ref", "refs/remotes/origin/main", first)
    names = [
        "side",
        "deep/er",
        "abcdef",
        "light",
        "heavy",
        "heavier",
        "refs/heads/side",
        "origin/main",
        first,
        first[:7],
    ]
    for name in [*names, first.upper()]:
        assert texts(repo.path, rev=name) == [[(A, "1\n")]], name
    for name in ("main", second, "HEAD"):
        assert texts(repo.path, rev=name) == [FOUND]


@pytest.mark.parametrize(
    "name",
    [
        "nowhere",
        "",
        "1" * 40,
        "1" * 64,
        "--all",
        "-n1",
        "HEAD~1",
        "main..side",
        ":/Change",
        "../HEAD",
        "../../outside",
        "refs/heads/../../HEAD",
        "a b",
        "\0",
        "\n",
        "é",
        "/etc/passwd",
        "x" * 10_000,
        "{0}",
        "HEAD^{tree}",
        "heads",
        "f" * 4,
    ],
)
def test_an_unknown_revision_is_an_input_error(tmp_path: Path, name: str) -> None:
    repo = simple().write(tmp_path / "repo")
    (tmp_path / "outside").write_text(repo.hashes[1] + "\n")
    with pytest.raises(InputError, match="no commit is named") as caught:
        list(repo.log(rev=name))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("name", ["HEAD:a.py", "HEAD^{tree}"])
def test_a_revision_that_is_no_commit(tmp_path: Path, name: str) -> None:
    repo = simple().write(tmp_path / "repo")
    found = repo.git("rev-parse", name).decode().strip()
    repo.git("tag", "no-commit", found)
    for revision in (found, found[:8], "no-commit"):
        with pytest.raises(InputError, match="no commit is named"):
            list(repo.log(rev=revision))


# Damage


def loose(repo: Repo, name: str) -> Path:
    found = repo.git("rev-parse", name).decode().strip()
    path = repo.path / ".git" / "objects" / found[:2] / found[2:]
    path.chmod(0o644)
    return path


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def not_compressed(path: Path) -> None:
    path.write_bytes(b"blob 2\0xx")


def bad_end(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 0xFF
    path.write_bytes(content)


DAMAGE = [Path.unlink, cut_short, emptied, not_compressed, bad_end]


def damaged() -> Story:
    story = Story()
    story.commit({"a.py": "1\n", "b.py": "b\n", "d/c.py": "c\n"}, by=AGENT)
    story.commit({"a.py": "2\n"})
    story.commit({"a.py": "3\n", "d/c.py": "c2\n"})
    return story


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("packed", [False, True])
def test_a_damaged_text_hurts_only_its_file(tmp_path: Path, damage: Callable[[Path], None], packed: bool) -> None:
    repo = damaged().write(tmp_path / "repo")
    path = loose(repo, f"{repo.hashes[1]}:a.py")
    if packed:
        content = path.read_bytes()
        path.unlink()
        repo.git("repack", "-q", "-d", check=False)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    damage(path)
    log = repo.log()
    found = {str(history.attributes["path"]): history for history in histories(log)}
    assert told(found["b.py"]) == [(A, "b\n")]
    assert told(found["d/c.py"]) == [(A, "c\n"), (P, "c2\n")]
    for history in (found[path] for path in found if path == "a.py"):
        with pytest.raises(LogError, match="cannot be read"):
            told(history)
    if "a.py" not in found:
        assert log.left_out.counts["missing object"] >= 1


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_text_of_a_person_is_found_when_it_is_used(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    repo = damaged().write(tmp_path / "repo")
    damage(loose(repo, f"{repo.hashes[2]}:a.py"))
    found = {str(history.attributes["path"]): history for history in histories(repo.log())}
    assert found["a.py"].revisions[0].text == "1\n"
    if len(found["a.py"].revisions) > 1:
        with pytest.raises(LogError, match="cannot be read"):
            told(found["a.py"])
        assert found["a.py"].revisions[0].text == "1\n"
        assert found["a.py"].revisions[-1].text == "3\n"


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["^{tree}", ":d"])
def test_a_damaged_directory_hurts_only_its_commits(tmp_path: Path, damage: Callable[[Path], None], name: str) -> None:
    repo = damaged().write(tmp_path / "repo")
    damage(loose(repo, f"{repo.hashes[3]}{name}"))
    log = repo.log()
    found = {str(history.attributes["path"]): told(history) for history in histories(log)}
    assert found["a.py"] == [(A, "1\n"), (P, "2\n")]
    assert log.left_out.counts["missing object"] >= 1


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_damaged_commit_is_an_error(tmp_path: Path, damage: Callable[[Path], None], number: int) -> None:
    repo = damaged().write(tmp_path / "repo")
    damage(loose(repo, repo.hashes[number]))
    with pytest.raises(LogError, match="repo"):
        list(repo.log())


@pytest.mark.parametrize("part", [0, 1, 2, 3])
def test_a_pack_that_was_cut_short_is_an_error_or_counted(tmp_path: Path, part: int) -> None:
    repo = damaged().write(tmp_path / "repo")
    repo.git("gc", "--quiet")
    [pack] = (repo.path / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    content = pack.read_bytes()
    pack.write_bytes(content[: len(content) * part // 4])
    with pytest.raises(LogError, match="repo"):
        list(repo.log())


def test_a_damaged_list_of_formattings_is_not_heeded(tmp_path: Path) -> None:
    story = damaged()
    story.commit({".git-blame-ignore-revs": "# list\n", ".gitattributes": "*.x binary\n"})
    repo = story.write(tmp_path / "repo")
    cut_short(loose(repo, "HEAD:.git-blame-ignore-revs"))
    cut_short(loose(repo, "HEAD:.gitattributes"))
    log = repo.log()
    found = {str(history.attributes["path"]) for history in histories(log)}
    assert found == {"a.py", "b.py", "d/c.py"}
    assert any(".gitattributes are not heeded" in note for note in log.notes)


# Names of files

NAMES = [
    b"caf\xe9.py",
    b"two\nlines.py",
    b"tab\there",
    b"quotes \"and' \\ more",
    b"-dash",
    b"--upload-pack=x",
    b":colon:name",
    b":100644 100644 aaaa bbbb M",
    b"<script>alert(1)</script>",
    b"x" * 250,
    b"/".join([b"deep"] * 300),
    "ünïcödé/日本.py".encode(),
    b"\xff\xfe\xed\xa0\x80",
    b" leading and trailing ",
    b"*?[a-z]",
    b"#comment",
    b"\\xe9",
    b"\x1b[31m\x07",
    b"1" * 40,
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_file_of_any_name(tmp_path: Path, name: bytes) -> None:
    story = Story()
    story.commit({b"other.py": "0\n", name: "1\n", b".gitattributes": "*.none binary\n"}, by=AGENT)
    story.commit({name: "2\n"})
    story.commit({name: None, b"moved/" + name: "2\n", b"z": "z\n"})
    found = {str(history.attributes["path"]): history for history in histories(story.write(tmp_path / "repo").log())}
    shown = "moved/" + name.decode(errors="backslashreplace")
    assert told(found[shown]) == FOUND
    assert found[shown].model_dump_json()
    assert type(found[shown]).model_validate_json(found[shown].model_dump_json()) == found[shown]


def test_two_names_that_are_shown_alike_have_two_ids(tmp_path: Path) -> None:
    story = Story()
    story.commit({b"\xe9": "1\n", b"\\xe9": "1\n"}, by=AGENT)
    found = histories(story.write(tmp_path / "repo").log())
    assert [history.attributes["path"] for history in found] == ["\\xe9", "\\xe9"]


# People and messages


@pytest.mark.parametrize(
    "by",
    [
        b"Andr\xe9 <andre@example.com>",
        b"Alice <al\xefce@example.com>",
        "名前 <n@example.com>",
        b"\xff <x>",
        b"{0} %s <a>",
    ],
)
@pytest.mark.parametrize(
    "message", [b"Caf\xe9 \xff", b"\n\n\nlate", b"\0 after", b"x" * 300_000, b"%x00%x00\n\nKey: \xe9"]
)
def test_people_and_messages_of_any_bytes(tmp_path: Path, by: str | bytes, message: bytes) -> None:
    story = Story()
    story.commit({"a.py": "1\n"}, by=by, message=message, trailers=(TRAILER,))
    story.commit({"a.py": "2\n"}, by=by, message=message)
    log = story.write(tmp_path / "repo").log()
    found = [told(history) for history in histories(log)]
    # Whatever follows a NUL in a message is lost to git.
    assert found == ([FOUND] if b"\0" not in message else [])


def test_a_message_in_another_encoding(tmp_path: Path) -> None:
    repo = simple().write(tmp_path / "repo")
    tree = repo.git("rev-parse", "HEAD^{tree}").decode().strip()
    for encoding, name in (("ISO-8859-1", b"Andr\xe9"), ("nonsense", b"x"), ("UTF-16", b"x")):
        lines = (
            f"tree {tree}\nparent {repo.hashes[2]}\n".encode(),
            b"author %s <andre@example.com> 1772442000 +0000\n" % name,
            b"committer %s <andre@example.com> 1772442000 +0000\n" % name,
            f"encoding {encoding}\n\nWords\n".encode(),
        )
        commit = repo.git("hash-object", "-t", "commit", "-w", "--stdin", given=b"".join(lines)).decode().strip()
        assert texts(repo.path, rev=commit) == [FOUND]


@pytest.mark.parametrize(
    "author",
    [
        b"",
        b"author\n",
        b"author Alice\n",
        b"author Alice <alice@example.com>\n",
        b"author Alice <alice@example.com> now\n",
        b"author Alice <alice@example.com> 99999999999999999999999999 +0000\n",
        b"author Alice <alice@example.com> 1772442000 +9999999\n",
        b"author Alice <alice@example.com> -5 +0000\n",
    ],
)
def test_a_commit_that_git_would_not_write(tmp_path: Path, author: bytes) -> None:
    repo = simple().write(tmp_path / "repo")
    blob = repo.git("hash-object", "-w", "--stdin", given=b"odd\n").decode().strip()
    tree = repo.git("mktree", given=f"100644 blob {blob}\ta.py\n".encode()).decode().strip()
    head = f"tree {tree}\nparent {repo.hashes[2]}\n".encode()
    text = head + author + b"committer Alice <alice@example.com> 1772442000 +0000\n\nWords\n"
    commit = repo.git("hash-object", "-t", "commit", "--literally", "-w", "--stdin", given=text).decode().strip()
    log = reader.open(repo.path, rev=commit)
    [history] = histories(log)
    assert told(history)[:2] == FOUND
    left_out = log.left_out.counts.total()
    assert (len(history.revisions), left_out) in ((3, 0), (2, 1))


# Texts


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("naïve\n".encode(), "naïve\n"),
        ("naïve\n".encode("latin-1"), "naïve\n"),
        (b"one\r\ntwo\rthree\n", "one\r\ntwo\rthree\n"),
        (b"\xef\xbb\xbfmarked\n", "\ufeffmarked\n"),
        (b"no end", "no end"),
        (b"\x1b[31m\x85\xff", "\x1b[31m\x85\xff"),
        (b"\xed\xa0\x80", "\xed\xa0\x80"),
    ],
)
def test_texts_lose_nothing(tmp_path: Path, content: bytes, text: str) -> None:
    story = Story()
    story.commit({"a.txt": content}, by=AGENT)
    story.commit({"a.txt": content + b"more\n"})
    [history] = histories(story.write(tmp_path / "repo").log())
    assert told(history) == [(A, text), (P, text + "more\n")]


def test_a_text_that_only_changed_its_encoding_was_not_rewritten(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.txt": "naïve café\n".encode("latin-1")}, by=AGENT)
    story.commit({"a.txt": "naïve café\n".encode()})
    [history] = histories(story.write(tmp_path / "repo").log())
    assert measure_rewrites(history).rewritten == 0
    assert measure_retention(history).kept == len("naïve café\n")


def test_a_person_only(tmp_path: Path) -> None:
    story = Story()
    story.commit({"a.py": "1\n"}, by=PERSON)
    assert texts(story.write(tmp_path / "repo").path) == []


def test_a_program_inside_the_repository_is_not_taken_for_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.commit({"a.py": "1\n"}, by=AGENT)
    repo = story.write(tmp_path / "repo")
    program = repo.path / "git"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    monkeypatch.chdir(repo.path)
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", os.environ["PATH"]]))
    assert len(list(reader.open(Path()))) == 1
    assert not (tmp_path / "ran").exists()


def test_a_relative_path_to_a_sha_256_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.commit({"a.py": "1\n"}, by=AGENT)
    story.write(tmp_path / "repo", "--object-format=sha256")
    monkeypatch.chdir(tmp_path)
    assert len(list(reader.open(Path("repo")))) == 1


@pytest.mark.parametrize("settings", [{"rev": None}, {"rev": 3}, {"agents": 3}])
def test_settings_of_another_type_are_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="must be"):
        reader.open(tmp_path, **settings)
