"""Parquet tables: their rows are the run's, and `datasets` loads the folder with its declared columns."""

from __future__ import annotations

import json

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rlanything.exports.export import export
from rlanything.exports.reading import Selection
from rlanything.exports.tables import SCHEMAS

pytestmark = pytest.mark.integration
NEEDED = "datasets is not installed: make exports, or pip install -e '.[exports]'"


def table(folder, name) -> pl.DataFrame:
    return pl.read_parquet(folder / name / "*.parquet")


def test_rows_are_those_of_the_records(exported, records):
    folder = exported("datasets")
    rollouts, steps, votes = (table(folder, name) for name in ("rollouts", "steps", "votes"))
    assert {name: dict(table(folder, name).schema) for name in ("rollouts", "steps", "votes")} == {
        name: dict(SCHEMAS[name]) for name in ("rollouts", "steps", "votes")
    }
    trajectories = [record.episode.trajectory for _, record in records]
    assert rollouts["outcome"].to_list() == [t.outcome for t in trajectories]
    assert rollouts["task_id"].to_list() == [t.task_id for t in trajectories]
    assert rollouts["trains"].to_list() == [r.episode.advantages is not None for _, r in records]
    taken = [step for t in trajectories for step in t.steps]
    assert steps["action"].to_list() == [step.action for step in taken]
    assert [tuple(ids) for ids in steps["response_ids"]] == [step.response_ids for step in taken]
    assert [tuple(found) for found in steps["response_logprobs"]] == [step.logprobs for step in taken]
    assert votes["verdict"].to_list() == [
        vote.verdict for _, r in records for judgement in r.episode.judgements for vote in judgement.votes
    ]
    mean = votes.group_by("iteration", "slot", "proposal", "rollout", "step", maintain_order=True).agg(
        pl.col("verdict").mean().alias("mean_vote")
    )
    assert_frame_equal(mean.select("step", "mean_vote"), steps.select("step", "mean_vote"))
    for task in rollouts.iter_rows(named=True):
        assert json.loads(task["payload"])


def test_the_environment_adds_what_it_knows(project, tmp_path):
    chosen = Selection(iterations=[0], filters=["against"])
    export("full", "datasets", tmp_path / "out", selection=chosen, environment=True, root=project)
    steps = table(tmp_path / "out", "steps")
    assert steps["good"].null_count() == 0
    assert steps["commands"].list.len().min() > 0
    votes = table(tmp_path / "out", "votes").join(steps, on=["slot", "proposal", "rollout", "step"])
    wrong = votes.filter((pl.col("verdict") > 0) != pl.col("good"))
    assert wrong.select("slot", "rollout").n_unique() == table(tmp_path / "out", "rollouts").height


def test_programs_have_tests(coding_project, tmp_path):
    export("full", "datasets", tmp_path / "out", root=coding_project)
    rollouts, tests = table(tmp_path / "out", "rollouts"), table(tmp_path / "out", "tests")
    assert not (tmp_path / "out" / "votes").exists()
    assert dict(tests.schema) == dict(SCHEMAS["tests"])
    right = rollouts.filter(pl.col("own_tests").is_not_null())
    assert (right["own_tests"].list.all() == (right["outcome"] > 0)).all()
    counts = dict(tests.group_by("iteration", "slot", "proposal").len().rows_by_key(("iteration", "slot")))
    assert counts


def test_datasets_loads_every_table(exported, tmp_path):
    datasets = pytest.importorskip("datasets", reason=NEEDED)
    folder = exported("datasets")
    for name in ("rollouts", "steps", "votes"):
        found = datasets.load_dataset(str(folder), name, split="train", cache_dir=str(tmp_path))
        assert found.column_names == list(SCHEMAS[name])
        mine = table(folder, name)
        assert found.num_rows == mine.height
        assert found[0] == mine.row(0, named=True)
    assert (
        datasets.load_dataset(str(folder), cache_dir=str(tmp_path))["train"].num_rows
        == table(folder, "rollouts").height
    )
