"""Notebooks as pages of the site: their cells, and what each shows, made anew at every build."""

from __future__ import annotations

import ast
import io
import json
import textwrap
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
PAGES = {"gallery.md": "gallery.ipynb", "reflexio-guide.md": "reflexio_guide.ipynb"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, notebook in PAGES.items():
        files.append(File.generated(config, name, content=page(NOTEBOOKS / notebook)))
    return files


def page(path: Path) -> str:
    """A notebook as Markdown, with what its cells show. What it writes is in a folder of its own."""
    names: dict[str, Any] = {"__name__": path.stem}
    parts = []
    with TemporaryDirectory() as folder, chdir(folder):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                parts.append(source.replace("](../", "]("))  # of pages, which are a folder above the notebooks
                continue
            fence = f"```python\n{source}\n```"
            if "hide-input" in cell["metadata"].get("tags", ()):
                fence = '??? example "What made it up"\n\n' + textwrap.indent(fence, "    ")
            parts += [fence, *run(source, names)]
    return "\n\n".join(part for part in parts if part) + "\n"


def run(source: str, names: dict[str, Any]) -> tuple[str, str]:
    """Run a cell; returns what it prints, and what its last line says, as Markdown."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    result, out = None, io.StringIO()
    with redirect_stdout(out):
        exec(compile(tree, "notebook", "exec"), names)
        if last is not None:
            result = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    return fenced(out.getvalue()), shown(result)


def shown(result: Any) -> str:
    """What a notebook would show of it."""
    if result is None:
        return ""
    if hasattr(result, "to_svg"):
        return f'<div class="shown">{result.to_svg()}</div>'
    if hasattr(result, "_repr_html_"):
        return f'<div class="shown">{result._repr_html_()}</div>'
    return fenced(f"{result!r}\n")


def fenced(text: str) -> str:
    """A text as it is; nothing where there is none."""
    return f"```text\n{text.rstrip()}\n```" if text.strip() else ""
