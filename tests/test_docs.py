"""Every code fence of the README and the documentation runs, and prints what the page shows.

What a page may hold:

- A `python` fence runs; those of a page run in order, in one namespace and in an empty folder of the page's
  own, and `await` works at the top level. A `text` or `output` fence right below is exactly what it prints.
- In a `console` fence, commands that begin with `$ evalr` run, and must succeed, unless `$ echo $?` right below
  shows another exit code. The lines below one are exactly what it prints, where a line `...` stands for any number
  of lines. Other commands are not run.
- Any fence with `title="name"` is also written to the file of that name, for the fences below it.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import difflib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=ticks)[ \t]*$\n?",
    flags=re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r"""\btitle=["']?([\w./-]+)["']?""")
LOOKS = re.compile(rf"""{TITLE.pattern}|\b(?:hl_lines|linenums)=["'][\d\s-]+["']""")
OUTPUT = {"text", "output"}
# Spellings under which Python would be shown without being run.
UNRUN = {"py", "python3", "pycon", "ipython", "ipython3", "doctest"}
EVALR = "import sys; sys.argv[0] = 'evalr'; from evalr.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Fence:
    """One fenced block: its language, what else its first line says, its text, and its line in the page."""

    language: str
    options: str
    body: str
    line: int
    follows_the_last: bool

    @property
    def title(self) -> str | None:
        found = TITLE.search(self.options)
        return found and found.group(1)


NO_FENCE = Fence(language="", options="", body="", line=0, follows_the_last=False)


def read_fences(text: str) -> list[Fence]:
    fences = []
    end = 0
    for found in FENCE.finditer(text):
        language, _, options = found["info"].strip().partition(" ")
        fences.append(
            Fence(
                language=language,
                options=options.strip(),
                body=textwrap.dedent(found["body"]),
                line=text.count("\n", 0, found.start("body")),
                follows_the_last=not text[end : found.start()].strip(),
            )
        )
        end = found.end()
    return fences


def run_page(name: str, text: str, folder: Path) -> None:
    """Run a page's fences in `folder`, which must be the working directory."""
    assert "~~~" not in text, f"{name}: fences are written with backticks"
    fences = read_fences(text)
    module = ModuleType("documentation_page")
    sys.modules[module.__name__] = module  # pydantic looks up forward references there
    try:
        with asyncio.Runner() as runner:
            for fence, following in zip(fences, [*fences, NO_FENCE][1:], strict=True):
                refuse_unrun(name, fence)
                if fence.title:
                    write_file(folder, fence.title, fence.body)
                if fence.language == "python":
                    printed = run_python(name, fence, module, runner)
                    if following.language in OUTPUT and following.follows_the_last:
                        check_output(f"{name}:{following.line}", following.body, printed, wildcard=False)
                elif fence.language == "console":
                    run_console(name, fence, folder)
    finally:
        del sys.modules[module.__name__]


def refuse_unrun(name: str, fence: Fence) -> None:
    where = f"{name}:{fence.line}"
    assert re.fullmatch(r"[\w+-]*", fence.language), f"{where}: name the language first, not {fence.language!r}"
    assert fence.language not in UNRUN, f"{where}: write ```python, which is run, and not ```{fence.language}"
    if fence.language in {"python", "console"}:
        unknown = LOOKS.sub("", fence.options).strip()
        assert not unknown, f"{where}: every fence is run, so what does {unknown!r} mean?"


def write_file(folder: Path, title: str, body: str) -> None:
    path = folder / title
    assert path.resolve().is_relative_to(folder.resolve()), f"{title} lies outside the page's folder"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body, encoding="utf-8")


def run_python(name: str, fence: Fence, module: ModuleType, runner: asyncio.Runner) -> str:
    source = "\n" * fence.line + fence.body  # so that a traceback names the line of the page
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, vars(module))
        if inspect.iscoroutine(result):
            runner.run(result)
    return printed.getvalue()


def run_console(name: str, fence: Fence, folder: Path) -> None:
    commands = read_commands(fence.body)
    following = [(command, output) for _, command, output in [*commands, (0, "", "")][1:]]
    for (offset, command, expected), (then, shown) in zip(commands, following, strict=True):
        if not re.match(r"evalr\b", command):
            continue
        where = f"{name}:{fence.line + 1 + offset}"
        done = run_shell(command, folder)
        code = int(shown) if then == "echo $?" else 0
        assert done.returncode == code, f"{where}: {command} ended with {done.returncode}:\n{done.stdout}"
        if expected.strip():
            check_output(where, expected, done.stdout, wildcard=True)


def read_commands(body: str) -> list[tuple[int, str, str]]:
    """(line, command, the lines below it) for each `$ command`; a final backslash continues it."""
    commands: list[tuple[int, str, str]] = []
    continues = False
    for number, line in enumerate(body.splitlines()):
        if continues:
            start, command, _ = commands.pop()
            commands.append((start, f"{command}\n{line}", ""))
        elif line.startswith("$ "):
            commands.append((number, line[2:], ""))
        elif commands:
            start, command, output = commands.pop()
            commands.append((start, command, f"{output}{line}\n"))
        continues = line.endswith("\\") and (continues or line.startswith("$ "))
    return commands


def run_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in which `evalr` is this checkout's, in an environment that is the same everywhere."""
    script = f'evalr() {{ {shlex.quote(sys.executable)} -c {shlex.quote(EVALR)} "$@"; }}\n{command}\n'
    fixed = {
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
        "TZ": "UTC",
    }
    return subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env={**os.environ, **fixed},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def check_output(where: str, expected: str, printed: str, *, wildcard: bool) -> None:
    """Compare line by line; spaces at a line's end and empty lines at both ends do not count."""
    wanted, got = tidy(expected), tidy(printed)
    parts = [r"(?:.*\n)*?" if wildcard and line.strip() == "..." else re.escape(line + "\n") for line in wanted]
    if re.fullmatch("".join(parts), "".join(line + "\n" for line in got)):
        return
    shown = "\n".join(difflib.unified_diff(wanted, got, "the page shows", "printed", lineterm=""))
    pytest.fail(f"{where}: the output differs\n{shown}", pytrace=False)


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").rstrip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_every_fence_runs_and_prints_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"), tmp_path)


# The runner itself


def page_of(*fences: str) -> str:
    return "\n\n".join(textwrap.dedent(fence).strip() for fence in fences) + "\n"


def test_fences_share_a_namespace_await_and_read_titled_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page_of(
        """
        ```json title="log.jsonl"
        {"n": 1}
        ```
        """,
        """
        ```python
        import asyncio
        from pathlib import Path
        log = Path("log.jsonl").read_text().strip()
        ```
        """,
        """
        ```python
        await asyncio.sleep(0)
        print(log)
        ```

        ```text
        {"n": 1}
        ```
        """,
    )
    run_page("page.md", text, tmp_path)


@pytest.mark.parametrize("between", ["", "\n"])
def test_output_that_differs_fails(between: str, tmp_path: Path) -> None:
    text = f"```python\nprint(1)\n```\n{between}```text\n2\n```\n"
    with pytest.raises(pytest.fail.Exception, match=r"page\.md:\d+: the output differs"):
        run_page("page.md", text, tmp_path)


def test_a_text_fence_after_prose_is_not_output(tmp_path: Path) -> None:
    run_page("page.md", "```python\nprint(1)\n```\n\nA log looks like this:\n\n```text\n2\n```\n", tmp_path)


def test_a_fence_that_raises_fails_and_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run_page("page.md", "# Title\n\n```python\nx = 1\nx / 0\n```\n", tmp_path)
    last = raised.traceback[-1]
    assert (str(last.path).endswith("page.md"), last.lineno + 1) == (True, 5)


@pytest.mark.parametrize(
    "first", ["python no-run", "python {.no-run}", "{.python .no-run}", "pycon", "py", "console no-run"]
)
def test_fences_that_would_not_be_run_are_refused(first: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run_page("page.md", f"```{first}\nprint(1)\n```\n", tmp_path)


def test_indented_fences_are_found() -> None:
    (fence,) = read_fences("- item\n\n    ```python\n    if True:\n        print(1)\n    ```\n")
    assert (fence.language, fence.body) == ("python", "if True:\n    print(1)\n")


def test_commands_and_what_they_print_are_told_apart() -> None:
    body = "$ pip install evalr\n$ evalr report log.jsonl \\\n    --json\nfirst\n...\n$ evalr demo\n"
    assert read_commands(body) == [
        (0, "pip install evalr", ""),
        (1, "evalr report log.jsonl \\\n    --json", "first\n...\n"),
        (5, "evalr demo", ""),
    ]


def test_three_dots_stand_for_any_lines_of_a_command_only() -> None:
    check_output("page.md:1", "a\n...\nd\n", "a  \nb\nc\nd\n", wildcard=True)
    check_output("page.md:1", "a\n...\nd\n", "a\nd\n", wildcard=True)
    with pytest.raises(pytest.fail.Exception):
        check_output("page.md:1", "a\n...\nd\n", "a\nb\n", wildcard=True)
    with pytest.raises(pytest.fail.Exception):
        check_output("page.md:1", "a\n...\n", "a\nb\n", wildcard=False)


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"page\.md:2: evalr no-such-command ended with"):
        run_page("page.md", "```console\n$ evalr no-such-command\n```\n", tmp_path)


def test_a_command_must_end_with_the_code_that_the_page_shows(tmp_path: Path) -> None:
    run_page("page.md", "```console\n$ evalr no-such-command\n...\n$ echo $?\n2\n```\n", tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md:2: evalr no-such-command ended with 2"):
        run_page("page.md", "```console\n$ evalr no-such-command\n...\n$ echo $?\n1\n```\n", tmp_path)
