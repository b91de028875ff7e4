"""The pages in docs/ say what is there: the example environment runs, every metric is explained, every path exists."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
EXAMPLE = (
    (ROOT / "docs" / "environments.md").read_text().partition("\n## An example\n")[2].partition("\n## ")[0]
)
RESULTS = (ROOT / "docs" / "results.md").read_text()
QUICK = [
    "train.iterations=1",
    "bootstrap.min_mu=0",
    *(f"bootstrap.{name}.{key}={value}" for name in ("policy", "reward", "adapter")
      for key, value in (("episodes", 16), ("steps", 4))),
]  # fmt: skip


def block(language: str) -> str:
    """The example's only block of a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", EXAMPLE, flags=re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A copy of the project with the example written into it and its commands run."""
    root = tmp_path_factory.mktemp("example")
    for name in ("envs", "experiments", "rlanything"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "envs" / "corridor").mkdir()
    (root / "envs" / "corridor" / "__init__.py").write_text('"""A dark corridor with lamps."""\n')
    (root / "envs" / "corridor" / "family.py").write_text(block("python"))
    (root / "experiments" / "env" / "corridor.yaml").write_text(block("yaml"))
    for line in block("bash").splitlines():
        program, *words = line.split()
        assert program == "rlanything"
        run(root, *words, *(QUICK if words[:2] == ["config", "write"] else []))
    return root


def run(root: Path, *words: str) -> None:
    """One command with the sources of `root`."""
    result = subprocess.run(
        [sys.executable, "-m", "rlanything", *words],
        cwd=root,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.integration
def test_the_example_environment_trains(trained):
    rows = [
        json.loads(x)
        for x in (trained / "runs" / "full" / "seed-0" / "metrics.jsonl").read_text().splitlines()
    ]
    assert len(rows) == 2
    assert rows[0]["status/env_error"] == 0
    assert rows[0]["status/ok"] + rows[0]["status/truncated"] > 0


@pytest.mark.integration
def test_every_metric_of_a_run_is_explained(trained):
    text = (trained / "runs" / "full" / "seed-0" / "metrics.jsonl").read_text()
    keys = {key for line in text.splitlines() for key in json.loads(line)}
    assert len(keys) > 30
    assert {key for key in keys if f"`{key}`" not in RESULTS} == set()


@pytest.mark.integration
def test_the_example_keeps_its_promises(trained):
    code = """
from envs.corridor.family import CorridorFamily
from rlanything.core.protocols import Teacher
from rlanything.core.types import Direction, InvalidProposal
family = CorridorFamily()
assert isinstance(family, Teacher)
panels = {s: family.make(s, 40, 1) for s in ("train", "in_domain", "out_of_domain", "reward_panel")}
assert not {t.task_id for t in panels["train"]} & {t.task_id for t in panels["in_domain"]}
for split, tasks in panels.items():
    assert len({t.task_id for t in tasks}) == 40
    for task in tasks:
        assert family.validate(task) == ""
        shown = [action for _, action in family.demonstrate(task, 0, 0.0)]
        labels = family.label_steps(task, shown)
        assert labels[-1] and len(labels) == len(shown)
        for way in Direction:
            changed = family.parse(task, family.rewrite(task, way, 0))
            assert family.validate(changed) == ""
            assert changed.payload["goal"] in changed.instruction
for text in ("", "rooms: x", "rooms: 3 start: 1 goal: pink", "rooms: 99999 start: 1 goal: red"):
    try:
        family.parse(panels["train"][0], text)
    except InvalidProposal:
        continue
    raise AssertionError(text)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=trained, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(trained)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("page", DOCS, ids=[page.name for page in DOCS])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_file_that_the_architecture_names_exists():
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.(?:py|yaml|toml|md))?)`", text)
    results = ("data/", "models/", "runs/", "labels/", "evaluation/", "report/")
    checked = [name for name in named if not name.startswith(results[:5])]
    assert len(checked) > 20
    places = (ROOT, ROOT / "rlanything")
    assert [name for name in checked if not any((place / name).exists() for place in places)] == []


def test_the_results_of_coding_are_those_of_its_report():
    results = (ROOT / "docs" / "coding.md").read_text().partition("<!-- results:begin -->")[2]
    report = (ROOT / "report" / "coding" / "report.md").read_text()
    rows = [
        line for line in results.partition("<!-- results:end -->")[0].splitlines() if line.startswith("| ")
    ]
    cells = [cell.strip() for row in rows[1:] for cell in row.strip("|").split("|")[1:12]]
    assert len(cells) == 6 * 11
    assert [cell for cell in cells if f"| {cell} |" not in report] == []
