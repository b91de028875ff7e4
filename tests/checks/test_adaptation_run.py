"""The adaptation check on a tiny finished run with real models."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_cases import here, rewrite_tasks
from stage_cases import SMALL, contents

from rlanything.buffer.views.find.runs import RunBuffer, open_run
from rlanything.checks import finished_runs
from rlanything.checks.adaptation.rewrites import rewrites
from rlanything.cli import main
from rlanything.files.records import read_metrics
from rlanything.planning import compose

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
DECLARED = {"against": None, "rollouts": 3, "seeds": 1}


def project(undisturbed: Path, root: Path, declared: dict[str, Any]) -> Path:
    """A project of one's own with the finished run, in which tasks were rewritten, and a declaration."""
    root.mkdir()
    for name in ("data", "models", "experiments"):
        (root / name).symlink_to(undisturbed.parents[2] / name)
    shutil.copytree(undisturbed.parents[1], root / "runs")
    rewrite_tasks(root / "runs" / undisturbed.relative_to(undisturbed.parents[1]))
    for name in ("envs", "rlanything"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", [*SMALL, "train.seeds=1"], root)
    (root / "tiny.yaml").write_text(yaml.safe_dump(declared))
    return root


def words(root: Path, *more: str) -> list[str]:
    return ["--root", str(root), "check", "adaptation", str(root / "tiny.yaml"), *more]


@pytest.fixture(scope="module")
def finished(undisturbed, tmp_path_factory) -> Path:
    root = project(undisturbed, tmp_path_factory.mktemp("adaptation") / "project", DECLARED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finished_runs, "run_all", here)
        assert main(words(root)) == 0
    return root


def run_of(project: Path) -> RunBuffer:
    return open_run(project / "runs" / "full" / "seed-0")


def rollouts(project: Path) -> dict[str, Any]:
    return json.loads((project / "checks" / "tiny" / "rollouts" / "seed-0.json").read_text())


def test_every_rewrite_of_the_run_was_played_again(finished):
    measured, known = rollouts(finished), rewrites(run_of(finished).events)
    assert len(known) == 3
    assert measured["rewrites"] == [rewrite.model_dump(mode="json") for rewrite in known]
    for probe in ("base", "trained"):
        for rewrite in known:
            assert measured["probes"][probe][rewrite.old][1] == 3
            assert measured["probes"][probe][rewrite.new][1] == 3
    assert measured["first"] == {}


def test_other_pairs_of_rules_play_nothing_again(finished, capsys):
    other = finished / "other.yaml"
    other.write_text((finished / "tiny.yaml").read_text() + "\ncompare: []\n")
    assert main(["--root", str(finished), "check", "adaptation", str(other), "--dry-run"]) == 0
    assert "seed 0: measured" in capsys.readouterr().out


def test_tasks_that_were_replaced_lie_apart(finished):
    moved = rollouts(finished)["moved"]
    assert list(moved["slots"]) == [run_of(finished).at(0).head(0).task_id]
    for lexical, embedded in [*moved["slots"].values(), moved["apart"]]:
        assert 0 < lexical < 1
        assert 0 < embedded < 2


def test_the_points_of_the_curves_have_the_tasks_of_their_iteration(finished):
    run = run_of(finished)
    measured = {row["iteration"]: row for row in read_metrics(run.folder.parent / "metrics.jsonl")}
    course = rollouts(finished)["course"]
    assert [point["iteration"] for point in course] == [
        k for k in sorted(measured) if measured[k].get("panel/in_domain") is not None
    ]
    for point in course:
        assert point["slots"] == len(run.at(0))
        assert point["replaced"] == (point["iteration"] > 0)
        assert point["success"] == {
            "full": {
                name: measured[point["iteration"]][f"panel/{name}"] for name in ("in_domain", "out_of_domain")
            }
        }
    moved = next(iter(rollouts(finished)["moved"]["slots"].values()))
    assert course[0]["words"] == course[0]["embedding"] == 0.0
    for key, distance in zip(("words", "embedding"), moved, strict=True):
        assert course[-1][key] == pytest.approx(distance / course[-1]["slots"])


def test_a_second_start_plays_nothing_again_and_gives_the_same_bytes(finished, monkeypatch):
    before = contents(finished / "checks" / "tiny")
    monkeypatch.setattr(
        finished_runs, "run_all", lambda _, calls, __: calls == [] or pytest.fail("played again")
    )
    assert main(words(finished)) == 0
    assert contents(finished / "checks" / "tiny") == before


def test_a_dry_run_plays_nothing(undisturbed, tmp_path, capsys):
    root = project(undisturbed, tmp_path / "project", DECLARED)
    assert main(words(root, "--dry-run")) == 0
    assert "seed 0" in capsys.readouterr().out
    assert not (root / "checks").exists()


def test_an_arm_that_was_not_trained_is_named(undisturbed, tmp_path, capsys):
    root = project(undisturbed, tmp_path / "project", {"seeds": 1})
    assert main(words(root)) == 2
    assert "rlanything train --arm policy_reward" in capsys.readouterr().err
