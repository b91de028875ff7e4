"""Episodes of verifiers: tokens, log-probs, advantages and rewards are the run's, also as the package reads them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rlanything.exports.export import export

pytestmark = [pytest.mark.long, pytest.mark.integration]
PYTHON = Path(os.environ.get("RLANYTHING_VERIFIERS", Path(__file__).parents[2] / ".rla/verifiers/bin/python"))
"""An environment of its own: the package wants other versions than this project."""


def read(folder: Path) -> list[dict[str, Any]]:
    """The episodes as the package reads them."""
    if not PYTHON.exists():
        pytest.skip(
            f"no verifiers in {PYTHON}: make exports; RLANYTHING_VERIFIERS names the Python of another place"
        )
    program = Path(__file__).with_name("read_traces.py")
    done = subprocess.run([PYTHON, program, folder], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_path_through_the_messages_is_what_trained(exported, records):
    rows = [json.loads(line) for line in (exported("verifiers") / "traces.jsonl").read_text().splitlines()]
    assert len(rows) == len(records)
    assert len({row["id"] for row in rows}) == len({row["traces"][0]["id"] for row in rows}) == len(rows)
    for row, (iteration, record) in zip(rows, records, strict=True):
        (trace,), episode = row["traces"], record.episode
        steps = episode.trajectory.steps
        assert [node["parent"] for node in trace["nodes"]] == [None, *range(len(trace["nodes"]) - 1)]
        ids = [token for node in trace["nodes"] for token in node["token_ids"]]
        assert tuple(ids) == steps[-1].prompt_ids + steps[-1].response_ids
        sampled = [node for node in trace["nodes"] if node["sampled"]]
        assert [tuple(node["token_ids"]) for node in sampled] == [step.response_ids for step in steps]
        assert [tuple(node["logprobs"]) for node in sampled] == [step.logprobs for step in steps]
        if episode.advantages is None:
            assert {node["advantages"] for node in sampled} == {None}
        else:
            assert [set(node["advantages"]) for node in sampled] == [{a} for a in episode.advantages]
        assert row["run"]["work"]["step"] == iteration
        assert trace["agent"]["trainable"] == (episode.advantages is not None)
    groups = {row["group"]["id"] for row in rows}
    assert len(groups) == len({(k, r.episode.trajectory.slot, r.proposal) for k, r in records})


def test_verifiers_reads_them(exported, records):
    rewards = [
        json.loads(line)["source"]["reward"]
        for line in (exported("trl-sft") / "train.jsonl").read_text().splitlines()
    ]
    for found, (iteration, record), reward in zip(read(exported("verifiers")), records, rewards, strict=True):
        episode = record.episode
        steps = episode.trajectory.steps
        (branch,) = found["branches"]
        assert found["reward"] == pytest.approx(reward)
        assert (found["ok"], found["step"]) == (episode.trajectory.counts, iteration)
        assert found["truncated"] == (episode.trajectory.status == "truncated")
        assert found["wrote"] == sum(len(step.response_ids) for step in steps) == sum(branch["mask"])
        assert [
            x for x, mine in zip(branch["logprobs"], branch["mask"], strict=True) if mine
        ] == pytest.approx([x for step in steps for x in step.logprobs])


def test_programs_have_one_reward(coding_project, tmp_path):
    export("full", "verifiers", tmp_path / "out", root=coding_project)
    rows = [json.loads(line) for line in (tmp_path / "out" / "traces.jsonl").read_text().splitlines()]
    assert {tuple(row["traces"][0]["rewards"]) for row in rows} == {("reward",)}
    assert [found["reward"] for found in read(tmp_path / "out")] == pytest.approx(
        [row["traces"][0]["rewards"]["reward"]["score"] for row in rows]
    )
