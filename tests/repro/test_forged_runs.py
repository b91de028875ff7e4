"""Replay: episodes that a run cannot have sampled, and files or seeds that it does not have, are named."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from replay_cases import RUN, copied, edit, problem

from rlanything.cli import main

pytestmark = pytest.mark.integration


@pytest.fixture
def root(undisturbed, tmp_path) -> Path:
    return copied(undisturbed, tmp_path)


def of_another_seed(record: dict[str, Any]) -> bool:
    record["trajectory"]["seed"] += 1
    return True


def of_another_number(record: dict[str, Any]) -> bool:
    record["trajectory"]["rollout"] += 1
    return True


def never_allowed(record: dict[str, Any]) -> bool:
    step = record["trajectory"]["steps"][0]
    step["response"][0] = max(step["allowed"][0]) + 1
    return True


def surer_than_sure(record: dict[str, Any]) -> bool:
    record["trajectory"]["steps"][0]["logprobs"][0] = 0.5
    return True


def unsure_of_the_only_one(record: dict[str, Any]) -> bool | None:
    for step in record["trajectory"]["steps"]:
        if len(step["allowed"][-1]) == 1:
            step["logprobs"][-1] = -0.5
            return True
    return None


def vote_surer_than_sure(record: dict[str, Any]) -> bool:
    record["judgements"][0]["votes"][0]["logprobs"][0] = 0.5
    return True


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (of_another_seed, "rollout 0: its seed is "),
        (of_another_number, "rollout 0: its number is 1, and that of this place in the run is 0"),
        (never_allowed, "rollout 0, step 0, token 0: id "),
        (surer_than_sure, "rollout 0, step 0, token 0: its log-prob is 0.5"),
        (unsure_of_the_only_one, ": its log-prob is -0.5, and no other id was allowed"),
        (vote_surer_than_sure, "rollout 0, step 0, vote 0, token 0: its log-prob is 0.5"),
    ],
)
def test_an_episode_that_this_run_cannot_have_sampled_is_named(root, change, says):
    edit(root, 1, change)
    assert problem(root).startswith("iteration 1, slot ")
    assert says in problem(root)


def test_an_episode_that_is_there_twice_is_a_difference_and_no_error(root, capsys):
    path = root / RUN / "rollouts" / "iter_0001.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join([*lines, lines[-1]])))
    assert main(["--root", str(root), "replay", "full"]) == 1
    assert "DIFFERS  iteration 0, slot " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "says"),
    [(3, "iteration 2 only measures, and this file holds rollouts"), (9, "the run has 2 iterations, and no")],
)
def test_rollouts_of_no_iteration_are_named(root, number, says):
    folder = root / RUN / "rollouts"
    shutil.copy(folder / "iter_0001.jsonl.gz", folder / f"iter_{number:04d}.jsonl.gz")
    assert f"iter_{number:04d}.jsonl.gz: {says}" in problem(root)


def test_a_seed_of_the_record_that_is_gone_is_named(root, capsys):
    path = root / "provenance" / "full.json"
    record = json.loads(path.read_text())
    record["seeds"]["1"] = record["seeds"]["0"]
    path.write_text(json.dumps(record))
    assert main(["--root", str(root), "replay", "full"]) == 1
    printed = capsys.readouterr().out
    assert "full/seed-0: 2 iterations" in printed
    assert "full/seed-1: 0 iterations" in printed
    assert "DIFFERS  the record provenance/full.json has it, and " in printed


def test_a_seed_that_the_record_lacks_is_named(root, capsys):
    shutil.copytree(root / RUN, root / RUN.with_name("seed-9"))
    assert main(["--root", str(root), "replay", "full"]) == 1
    assert "DIFFERS  the record provenance/full.json has no seed-9" in capsys.readouterr().out
