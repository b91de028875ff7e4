"""docs/notebook.ipynb runs: on the report in git, and whole on a run; it is stored without outputs."""

from __future__ import annotations

import copy
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"
CELLS = json.loads(NOTEBOOK.read_text())["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
RUN = "run"
"""The tag of cells that read runs/, which is not in git."""


def executed(project: Path, *, without: str = "") -> dict[str, Any]:
    """The cells' outputs by the cells' names, run in a kernel whose folder is the project's docs/."""
    nbformat = pytest.importorskip("nbformat", reason="not installed: pip install -e '.[dev]'")
    nbclient = pytest.importorskip("nbclient", reason="not installed: pip install -e '.[dev]'")
    pytest.importorskip("ipykernel", reason="not installed: pip install -e '.[dev]'")
    (project / "docs").mkdir()
    book = copy.deepcopy(nbformat.read(NOTEBOOK, as_version=4))
    book.cells = [cell for cell in book.cells if without not in cell.metadata.get("tags", ()) or not without]
    kernel = {"metadata": {"path": str(project / "docs")}}
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=kernel).execute()
    return {cell.id: cell.outputs for cell in book.cells if cell.cell_type == "code"}


def text(outputs: Any) -> str:
    """What a cell printed, and the plain text of what it showed."""
    return "".join(out.get("text", "") or out.get("data", {}).get("text/plain", "") for out in outputs)


def pictures(outputs: Any) -> int:
    return sum("image/png" in out.get("data", {}) for out in outputs)


@pytest.fixture
def recorded(tmp_path) -> Path:
    """What git has of the recorded results."""
    shutil.copytree(ROOT / "report", tmp_path / "report")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.integration
def test_it_shows_what_is_in_git(recorded):
    outputs = executed(recorded, without=RUN)
    summary = json.loads((ROOT / "report" / "summary.json").read_text())
    shown = text(outputs["arms"])
    assert all(f'"{arm}"' in shown or arm in shown for arm in summary)
    assert str(summary["base"]["in_domain"]["mean"]) in shown
    assert pictures(outputs["intervals"]) == pictures(outputs["learning"]) == 1


@pytest.mark.long
@pytest.mark.integration
def test_it_shows_a_run(recorded, undisturbed):
    for name in ("runs", "models", "data", "experiments"):
        (recorded / name).symlink_to(undisturbed.parents[2] / name)
    outputs = executed(recorded)
    assert "'slots': 8" in text(outputs["diff"])
    assert "instruction" in text(outputs["versions"])
    assert "outcome " in text(outputs["rollout"])
    assert "mean_vote" in text(outputs["rollout"])
    assert text(outputs["reasons"]).count(" -> ") > 0
    assert "'votes rows': " in text(outputs["tables"])


def test_cells_that_need_a_run_say_what_is_missing(recorded):
    from rlanything.buffer import views
    from rlanything.core.errors import RLAnythingError
    from rlanything.rollouts import show

    for ask in (views.ls, views.diff, show):
        with pytest.raises(RLAnythingError, match="full/seed-0"):
            ask("full/seed-0", root=recorded)


def test_it_is_stored_without_outputs():
    """Stored outputs would be results that nobody computes again; the report has the pictures."""
    assert [cell["outputs"] for cell in CODE] == [[]] * len(CODE)
    assert {cell["execution_count"] for cell in CODE} == {None}


def test_each_cell_is_short_and_is_explained_before_it():
    kinds = [cell["cell_type"] for cell in CELLS]
    assert all(before == "markdown" for before, kind in pairwise(kinds) if kind == "code")
    assert max(len(cell["source"]) for cell in CODE) <= 16


def test_it_uses_public_names_alone_and_the_cells_that_read_runs_are_marked():
    source = ["".join(cell["source"]) for cell in CODE]
    assert not any("._" in text or "import _" in text for text in source)
    tagged = [cell["id"] for cell in CODE if RUN in cell["metadata"].get("tags", ())]
    assert tagged == ["versions", "diff", "rollout", "reasons", "tables"]
