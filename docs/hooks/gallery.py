"""The gallery notebook as a page of the site: its cells, and what each shows, made anew at every build."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "gallery.ipynb"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, "gallery.md", content=page(NOTEBOOK)))
    return files


def page(path: Path) -> str:
    """A notebook as Markdown, with what its cells show as HTML."""
    names: dict[str, Any] = {"__name__": "gallery"}
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        if cell["cell_type"] == "code":
            parts.append(shown(run(source, names)))
    return "\n\n".join(part for part in parts if part) + "\n"


def run(source: str, names: dict[str, Any]) -> Any:
    """Run a cell; returns what its last line says."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "gallery", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "gallery", "eval"), names)


def shown(result: Any) -> str:
    """What a notebook would show of it."""
    if result is None:
        return ""
    if hasattr(result, "to_svg"):
        return f'<div class="shown">{result.to_svg()}</div>'
    if hasattr(result, "_repr_html_"):
        return f'<div class="shown">{result._repr_html_()}</div>'
    return f"```text\n{result!r}\n```"
