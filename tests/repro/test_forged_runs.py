"""Replay: episodes that a run cannot have sampled, and files or seeds that it does not have, are named."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from replay_cases import RUN, copied, edit, problem
from stage_cases import small

from rlanything.cli import main
from rlanything.repro.rows import first_gap
from rlanything.repro.stored import StoredRun

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


@pytest.mark.parametrize("name", ["iter_0000.jsonl.gz", "iter_00001.jsonl.gz", "iter_x.jsonl.gz"])
def test_a_file_of_rollouts_that_no_iteration_writes_is_named(root, name):
    folder = root / RUN / "rollouts"
    shutil.copy(folder / "iter_0001.jsonl.gz", folder / name)
    assert problem(root).endswith(f"{name}: no iteration writes a file of this name")


def test_a_change_of_tasks_in_the_iteration_that_only_measures_is_named(root):
    run = StoredRun(root / RUN)
    real = run.buffers
    late = replace(real.events[-1], iteration=2)
    forged = {
        "events": (*real.events, late),
        "at": real.at,
        "iterations": real.iterations,
        "latest": real.latest,
    }
    run.__dict__["buffers"] = SimpleNamespace(**forged)
    assert first_gap(run, small()).startswith(
        f"the buffer has an event of iteration 2 (slot {late.slot}), and tasks"
    )
    forged |= {"events": real.events, "at": lambda n: SimpleNamespace(digest=str(n))}
    run.__dict__["buffers"] = SimpleNamespace(**forged)
    assert first_gap(run, small()) == "snapshot 3 is not snapshot 2, and iteration 2 only measures"


@pytest.mark.parametrize(
    ("row", "key", "says"),
    [
        (2, "accuracy", "the last row of metrics.jsonl has accuracy, and its iteration only measures"),
        (
            1,
            "accepted_accuracy",
            "iteration 1, metrics: accepted_accuracy is stored, and no iteration computes it",
        ),
        (
            0,
            "accepted_totals",
            "iteration 0, metrics: accepted_totals is stored, and no iteration computes it",
        ),
    ],
)
def test_a_metric_that_the_loop_did_not_compute_is_named(root, row, key, says):
    path = root / RUN / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert key not in rows[row]
    rows[row][key] = 1.0
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    assert problem(root) == says


def test_a_reader_that_closes_the_output_does_not_make_a_difference_a_success(root):
    edit(root, 0, surer_than_sure)
    words = f"{shlex.quote(sys.executable)} -m rlanything --root {shlex.quote(str(root))} replay full"
    script = f"{words} >/dev/null; echo $?; {words} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    whole, closed = map(int, done.stdout.split())
    assert whole == 1
    assert closed in (1, 141), "1 where it wrote before the pipe was closed"


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
