"""The notebooks of the documentation run in a real kernel, with warnings as errors, and show what they should.

They are stored without outputs: what pandas and polars show changes from release to release, and an output that nobody
made again is a claim that nobody checked. Here each is made, and looked at.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
TEN_SESSIONS = ROOT / "docs" / "notebooks" / "ten_sessions.ipynb"
GALLERY = ROOT / "docs" / "notebooks" / "gallery.ipynb"
GUIDE = ROOT / "docs" / "notebooks" / "reflexio_guide.ipynb"
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

    def execute(path: Path, *, writes: Sequence[str] = ()) -> dict[str, Any]:
        notebook = nbformat.read(path, as_version=4)
        notebook.cells.insert(0, nbformat.v4.new_code_cell(STRICT, id="strict"))
        client = NotebookClient(
            notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        client.execute()
        assert sorted(each.name for each in folder.iterdir()) == sorted(writes)
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


def printed(outputs: list[Any]) -> list[str]:
    """The lines that a cell prints."""
    return "".join(each.text for each in outputs if each.output_type == "stream" and each.name == "stdout").splitlines()


def test_the_guide_to_reflexios_logs_comes_to_its_decision(run: Any, tmp_path: Path) -> None:
    """All that its text says in numbers is what its cells show."""
    found = run(GUIDE, writes=["reflexio_desk.db", "config_desk.json"])
    assert not [
        output
        for outputs in found.values()
        for output in outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    page = html.unescape(found["report"][0].data["text/html"])
    for said in ("treatment v holdout", "+13.0pp", "74.4% (636 sessions) v holdout 61.4% (264 sessions)", "learnings"):
        assert said in page
    assert str(tmp_path) not in page
    assert found["log"] == []
    assert found["impact"][0].data["text/plain"] == "outcome_difference +13.0pp [+6.1, +20.0] · 900 sessions"

    assert printed(found["sound"])[0].startswith("users assigned: 178 treatment v 69 holdout (sample ratio: p = 0.479)")
    assert printed(found["sound"])[1:] == [
        "treatment Coverage(part=636, whole=636) 178",
        "holdout Coverage(part=264, whole=264) 69",
        "Coverage(part=900, whole=900) 900 0",
    ]
    assert printed(found["sure"]) == [
        "outcome_relative +21.2% [+9.2, +35.9] · 900 sessions",
        "outcome_always_valid +13.0pp [+1.3, +24.7] · 900 sessions",
    ]
    assert printed(found["cost"]) == [
        "outcome_difference +13.0pp [+6.1, +20.0] · 900 sessions",
        "outcome_corrections_difference -0.0799 [-0.182, 0.0221] · 900 sessions",
        "outcome_turns_difference +13.0pp [+6.0, +19.9] · 900 sessions",
        "outcome_escalation_difference -5.3pp [-10.4, -0.8] · 900 sessions",
        "output_tokens_difference 25.6 [23.6, 27.6] · 900 sessions",
        "drop_off_difference 0.0pp [-6.6, +2.6] · 900 sessions",
    ]
    assert [row[1] for row in rows(found["weeks-with"])] == [
        "72.4%", "74.4%", "73.3%", "72.9%", "79.8%", "75.5%", "69.9%",
    ]  # fmt: skip
    assert [row[1] for row in rows(found["weeks-without"])] == [
        "60.0%", "44.4%", "72.1%", "55.9%", "70.0%", "58.7%", "66.7%",
    ]  # fmt: skip

    assert rows(found["shadow"])[0][1:3] == ["56.7%", "[48.8, 64.3]"]
    assert printed(found["lost"]) == ["True 8"]
    assert "it names the order" in found["lost"][1].data["text/html"]
    assert printed(found["learnings"]) == [
        "learning_response_negative 9.5% [6.9, 12.9] · 379 responses of 161 users",
        "learning_positive 60.0% [52.9, 66.7] · 195 learnings of 116 users",
        "learning_positive 59.2% [51.4, 66.6] · 184 learnings of 118 users",
        "{'content_defect': 36}",
        "user_playbook 4 27 36 36 True",
    ]
    assert printed(found["association"]) == ["[('3', 42), ('2', 35), ('5', 34), ('1', 29), ('4', 10)]"]
    assert found["association"][1].data["text/plain"].startswith("learning_association -15.8pp [-25.5, -6.6]")
    assert printed(found["customers"]) == ["kappa 0.813 [0.648, 0.904] · 100 pairs of 85 users 100", "900 900 379 636"]
    assert found["customers"][1].data["text/plain"].startswith("accuracy 92.0% [84.8, 96.0]")
    assert printed(found["decision"]) == ["keep ['user_playbook 4']"]
