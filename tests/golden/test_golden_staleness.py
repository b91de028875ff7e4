"""`train.staleness` 1: the same bytes whoever is faster, with workers and without, and wherever the run was killed."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import golden_cases as golden
import pytest
import yaml

from rlanything.cli import main
from rlanything.files.records import read_lines
from rlanything.loop.iteration import Loop
from rlanything.repro import replay_report
from rlanything.runs.layout import Layout

ARM = "full"
RECORDS = (".jsonl", ".gz", ".safetensors")
WORKERS = {"form": "processes", "workers": 2, "bundle": 4}
pytestmark = pytest.mark.integration


def train(root: Path, executor: dict[str, object] | None = None, arm: str = ARM) -> dict[str, bytes]:
    """The records and weights of a training whose rollouts are one iteration older."""
    golden.run(root, arm, train__staleness=1, **({"executor": executor} if executor else {}))
    run = Layout(root).run(arm, 0)
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in run.rglob("*")
        if path.suffix in RECORDS
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return golden.project(tmp_path_factory.mktemp("stale") / "project")


@pytest.fixture(scope="module")
def alone(root) -> dict[str, bytes]:
    """In one process, one thing after the other."""
    found = train(root)
    assert len(found) > 10
    return found


@pytest.mark.long
@pytest.mark.parametrize("slow", ["sampling", "learning"])
def test_a_thread_beside_learning_leaves_the_same_bytes_whoever_is_faster(alone, tmp_path, monkeypatch, slow):
    collect, roll_out = Loop.collect, Loop.roll_out
    beside: list[int] = []

    def collected(loop, state, batch=None):
        for thread in threading.enumerate():
            if slow == "learning" and thread.name == "ahead":
                thread.join()
        return collect(loop, state, batch)

    def rolled_out(loop, state):
        if threading.current_thread().name == "ahead":
            beside.append(state.iteration)
            time.sleep(2.0 if slow == "sampling" else 0.0)
        return roll_out(loop, state)

    monkeypatch.setattr(Loop, "collect", collected)
    monkeypatch.setattr(Loop, "roll_out", rolled_out)
    assert train(golden.project(tmp_path / "project"), WORKERS) == alone
    assert beside == [1, 2]


@pytest.mark.parametrize(
    ("executor", "kills"),
    [
        pytest.param(None, (0, 1, 2), marks=pytest.mark.long, id="inline"),
        pytest.param(None, (1,), id="inline, once"),
        pytest.param(WORKERS, (0, 1, 2), marks=pytest.mark.long, id="processes"),
    ],
)
def test_a_run_that_is_killed_while_it_samples_ahead_ends_with_the_same_bytes(
    alone, tmp_path, executor, kills
):
    place = golden.project(tmp_path / "project")
    for iteration in kills:
        with golden.killed_in(iteration):
            train(place, executor)
    assert train(place, executor) == alone


def test_each_episode_and_each_row_of_metrics_says_how_old_the_weights_were(root, alone):
    run = Layout(root).run(ARM, 0)
    for iteration, age in enumerate((0, 1, 1)):
        lines = list(read_lines(run / "rollouts" / f"iter_{iteration + 1:04d}.jsonl.gz", "train"))
        assert {line["trajectory"]["version"] for line in lines} == {iteration - age}
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [row.get("staleness") for row in rows] == [0.0, 1.0, 1.0, None]


def test_a_rollout_is_shown_with_the_age_of_its_weights(root, alone, capsys):
    (root / "params.yaml").write_text(
        yaml.safe_dump(golden.configuration().model_dump(mode="json", by_alias=True))
    )
    assert main(["--root", str(root), "rollouts", "show", ARM, "--iteration", "2"]) == 0
    assert "sampled by the weights of the iteration before (train.staleness)" in capsys.readouterr().out


def test_what_was_decided_can_be_replayed(root, alone):
    assert replay_report.replay_run(Layout(root).run(ARM, 0), ()).problem == ""
    assert replay_report.replay_run(Layout(root).run(ARM, 0), (), play=True).problem == ""


def test_the_first_iteration_is_that_of_a_run_without_staleness(root, alone):
    _, recorded = golden.read(ARM)
    now = golden.kept(Layout(root).run(ARM, 0))
    first, ours = ([line for line in lines if line["iteration"] == 0] for lines in (recorded, now))
    assert golden.first_difference(first, ours) is None
    assert golden.first_difference(recorded, now) is not None
