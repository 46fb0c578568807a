"""The notebooks of the documentation run in a real kernel, with warnings as errors, and show what they should.

They are stored without outputs: what pandas and polars show changes from release to release, and an output that nobody
made again is a claim that nobody checked. Here each is made, and looked at.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TEN_SESSIONS = ROOT / "docs" / "notebooks" / "ten_sessions.ipynb"
GALLERY = ROOT / "docs" / "notebooks" / "gallery.ipynb"
STRICT = "import warnings; warnings.simplefilter('error')"


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.name for path in NOTEBOOKS])
def test_a_notebook_is_stored_without_outputs_and_without_traces_of_a_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in code_cells(notebook):
        assert (cell.outputs, cell.execution_count) == ([], None), cell.id
    metadata = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    assert set(metadata) == {"kernelspec", "language_info"}
    assert metadata["language_info"] == {"name": "python"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a notebook in a fresh IPython, in an empty folder: nothing of the machine's own is in it."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    for name in ("PYTHONSTARTUP", "JUPYTER_PATH", "PYTHONWARNINGS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "work"
    folder.mkdir()

    def execute(path: Path) -> dict[str, Any]:
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(STRICT, id="strict"))
        client = NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
        assert list(folder.iterdir()) == []
        return {cell.id: cell.outputs for cell in code_cells(notebook)}

    return execute


def rows(outputs: list[Any]) -> list[list[str]]:
    """The texts of the cells of the table that an output shows."""
    (output,) = outputs
    table = output.data["text/html"].partition("<tbody>")[2]
    return [
        [html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]


def test_ten_sessions_shows_what_it_says(run: Any) -> None:
    found = run(TEN_SESSIONS)
    assert not [
        output
        for outputs in found.values()
        for output in outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]

    # Of ten sessions T2 and T6 were never answered, and T10 may still be.
    report = {row[0]: row for row in rows(found["read"])}
    assert report["drop-off, decided only"][1] == "22.2%"
    assert report["drop-off, decided only"][3].startswith("9 sessions of 5 users · left out: 1 pending")
    page = found["read"][0].data["text/html"]
    for said in ("10 sessions, 5 users", "1 of 33 rows: 1 unknown role &#x27;note&#x27; (row 17)", "text (33)"):
        assert said in page
    assert [row[0] for row in rows(found["grouped"])] == [
        "drop-off after 1h", "chat", "mail", "drop-off, decided only", "chat", "mail",
    ]  # fmt: skip

    assert found["hand"][0].data["text/plain"] == "DropOff(outcome='dropped', cause='no_reply')"
    assert rows(found["estimate"])[0][:2] == ["drop_off_decided", "22.2%"]
    assert found["estimate"][0].data["text/plain"].startswith("drop_off_decided 22.2% [")
    assert found["bounds"][0].data["text/plain"] == "({'pending': 1}, (0.2, 0.3))"
    assert [row[:2] for row in rows(found["by"])] == [["chat", "40.0%"], ["mail", "0.0%"]]
    assert [row[:2] for row in rows(found["trend"])] == [
        ["2026-09-28", "25.0%"], ["2026-09-29", "33.3%"], ["2026-09-30", "0.0%"],
    ]  # fmt: skip
    assert "<th>2026-09-29</th>" in found["to-frame"][0].data["text/html"]
    assert '"chat"' in html.unescape(found["polars"][0].data["text/html"])

    assert rows(found["judge"])[0][:2] == ["completion", "40.0%"]
    assert [row[:2] for row in rows(found["feedback"])][::2] == [
        ["task completion · judge@1", "40.0%"], ["task completion · people@1", "75.0%"],
    ]  # fmt: skip
    assert found["agree"][0].data["text/plain"] == "[]"


def shown(outputs: list[Any]) -> Any:
    (output,) = outputs
    return output.data


def test_the_gallery_shows_every_result_as_a_table_and_as_a_plot(run: Any) -> None:
    found = run(GALLERY)
    assert not [
        output
        for outputs in found.values()
        for output in outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    plots = [name for name in found if name.endswith("-plot")]
    assert len(plots) == 9
    for name in plots:
        data = shown(found[name])
        assert set(data) == {"text/plain", "application/vnd.vegalite.v5+json", "image/svg+xml"}
        assert data["image/svg+xml"].startswith("<svg")
    tables = [name for name in found if name not in (*plots, "strict", "made", "page")]
    assert len(tables) == 12
    for name in tables:
        page = shown(found[name])["text/html"]
        assert page.startswith('<div class="evalr"><style>')
        assert page.count("<table>") == page.count("</table>") == 1
        assert "95% interval" in page
        assert len(page) < 20_000
    assert shown(found["page"])["text/plain"] == "(True, True)"
    assert rows(found["estimate"])[0][0] == "success"
    assert [row[0] for row in rows(found["groups"])] == ["accounts", "billing", "delivery"]
    assert "untagged (no arm)" in [row[0] for row in rows(found["trends"])]
    assert "observational" in shown(found["lift"])["text/html"]
