"""Every arm gives the recorded numbers, however its work is divided and wherever it was killed."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import golden_cases as golden
import pytest
from golden_processes import TRAIN, in_child, several, with_params
from rank_cases import two_ranks

from rlanything.core.errors import ConfigError
from rlanything.core.types import ScoredReplies, ScoredTrajectory
from rlanything.engines.native import NativeEngine
from rlanything.learn import batches
from rlanything.learn.packing import Row, policy_rows, reward_rows
from rlanything.repro import replay_report
from rlanything.runs.fingerprint import Origin, made_from
from rlanything.runs.layout import Layout
from rlanything.stages import train

ARM = "full"
GENERATE = {"_target_": "rlanything.engines.transformers.TransformersEngine", "max_batch": 16}
OLDER = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
"""What torch does on a processor without vector instructions younger than SSE."""


@pytest.fixture
def root(tmp_path) -> Path:
    return golden.project(tmp_path / "project")


@pytest.fixture(scope="module")
def shared_root(tmp_path_factory) -> Path:
    """One project for all arms: `step_only` judges with what `policy_reward` trained."""
    return golden.project(tmp_path_factory.mktemp("golden") / "project")


@pytest.mark.parametrize("arm", golden.ARMS)
def test_an_arm_gives_the_recorded_numbers(shared_root, arm):
    reward_from = golden.configuration().arms[arm].reward_from
    if reward_from and not Layout(shared_root).run(reward_from, 0).is_dir():
        golden.run(shared_root, reward_from)
    golden.check(arm, golden.run(shared_root, arm))


@pytest.mark.parametrize(("arm", "kept"), [("policy", [0, 1, 2, 3]), ("policy_reward", [])])
def test_an_engine_keeps_the_weights_of_a_reward_model_that_does_not_train(root, monkeypatch, arm, kept):
    """Its copy is made when it begins, so also after a resume: here before the first and the third iteration."""
    engines: dict[int, NativeEngine] = {}
    renamed: list[int] = []

    def rename(engine: NativeEngine, version: int) -> None:
        engines[id(engine)] = engine
        renamed.append(version)
        engine._version = version

    monkeypatch.setattr(NativeEngine, "rename", rename, raising=False)
    with golden.killed_in(2):
        golden.run(root, arm)
    assert renamed == kept[:3]
    golden.check(arm, golden.run(root, arm))
    assert renamed == kept[:3] + kept[2:]
    assert len(engines) == 2 * bool(kept)


def test_a_run_of_a_version_that_counted_votes_on_proposals_in_mean_vote_can_be_replayed(root):
    golden.run(root, ARM)
    run = Layout(root).run(ARM, 0)
    with gzip.open(run / "rollouts" / "iter_0002.jsonl.gz", "rt") as lines:
        episodes = [json.loads(line) for line in lines]
    assert any(episode["proposal"] for episode in episodes)
    votes = [
        v["verdict"] for e in episodes for judged in e["judgements"] for v in judged["votes"] if v["verdict"]
    ]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert rows[1]["mean_vote"] != sum(votes) / len(votes)
    for value, problem in (
        (sum(votes) / len(votes), ""),
        (0.5, "iteration 1, metrics: mean_vote is 0.5, replayed "),
    ):
        rows[1]["mean_vote"] = value
        (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = replay_report.replay_run(run, []).problem
        assert found.startswith(problem) if problem else not found


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [
        {"engine__max_batch": 3, "learn__micro_batch_tokens": 700},
        {"engine": GENERATE, "learn__gradient_checkpointing": True},
    ],
    ids=["small batches", "generate and checkpoints"],
)
def test_the_size_of_batches_and_the_engine_change_no_token_and_no_decision(root, changes):
    golden.check(ARM, golden.run(root, ARM, **changes))


def unpacked_policy_rows(lesson: ScoredTrajectory, loss_weight: str) -> list[Row]:
    """Every turn in a row of its own, with the weights that it has in the packed row."""
    weights = iter([w for row in policy_rows(lesson, loss_weight) for w in row.weight])
    rows = []
    for step, advantage in zip(lesson.trajectory.steps, lesson.advantages, strict=True):
        alone = replace(lesson.trajectory, steps=(step,))
        rows += policy_rows(ScoredTrajectory(alone, (advantage,)), loss_weight)
    for row in rows:
        row.weight = [next(weights) for _ in row.weight]
    return rows


def unpacked_reward_rows(lesson: ScoredReplies, loss_weight: str, _most: int) -> list[Row]:
    """Every vote in a row of its own."""
    rows = []
    for judgement, advantages, weight in zip(
        lesson.questions, lesson.advantages, lesson.weights, strict=True
    ):
        for vote, advantage in zip(judgement.votes, advantages, strict=True):
            alone = replace(judgement, votes=(vote,))
            rows += reward_rows(ScoredReplies((alone,), ((advantage,),), (weight,)), loss_weight)
    return rows


@pytest.mark.long
def test_packing_turns_and_votes_into_shared_rows_changes_no_number_but_the_count_of_rows(root, monkeypatch):
    monkeypatch.setattr(batches, "policy_rows", unpacked_policy_rows)
    monkeypatch.setattr(batches, "reward_rows", unpacked_reward_rows)
    packed, unpacked = same_but_for_rows(golden.run(root, ARM))
    assert all(few < many for few, many in zip(packed, unpacked, strict=True))


@pytest.mark.long
def test_cutting_trees_that_exceed_a_forward_pass_changes_no_number_but_the_count_of_rows(root):
    whole, cut = same_but_for_rows(golden.run(root, ARM, learn__micro_batch_tokens=1))
    assert cut[::2] == whole[::2]  # of the policy, whose turns extend each other
    assert all(few < many for few, many in zip(whole[1::2], cut[1::2], strict=True))


def same_but_for_rows(now: list[golden.Line]) -> tuple[list[float], list[float]]:
    """The counts of rows that are recorded, and those of now. Everything else must be as recorded."""
    header, recorded = golden.read(ARM)
    counts = counts_of_rows(recorded), counts_of_rows(now)
    assert len(counts[0]) == 6
    found = golden.first_difference(recorded, now)
    assert found is None, golden.explained(ARM, header, recorded, found)
    return counts


def counts_of_rows(lines: list[golden.Line]) -> list[float]:
    """Taken out of the lines."""
    rows = [line["metrics"] for line in lines if "policy/rows" in line.get("metrics", {})]
    return [row.pop(name) for row in rows for name in ("policy/rows", "reward/rows")]


@pytest.mark.parametrize("kills", [(0, 1, 2), (1,)])
def test_a_run_that_is_resumed_after_any_iteration_gives_the_recorded_numbers(root, kills):
    """After each of them, and once, so that several iterations follow."""
    for iteration in kills:
        with golden.killed_in(iteration):
            golden.run(root, ARM)
    golden.check(ARM, golden.run(root, ARM))


def test_a_run_that_a_threshold_ended_goes_on_with_a_higher_one_to_the_same_bytes(root, shared_root, capsys):
    with pytest.raises(ConfigError, match=r"iteration 1: (0\.[89]|1\.\d)% .*judge\.max_invalid = 0\.8%"):
        golden.run(root, ARM, judge__max_invalid=0.008)
    golden.run(root, ARM)
    assert "resuming after iteration 0" in capsys.readouterr().err
    if not Layout(shared_root).run(ARM, 0).is_dir():
        golden.run(shared_root, ARM)
    have_the_same_bytes(*(Layout(place).run(ARM, 0) for place in (root, shared_root)))


@pytest.mark.long
@pytest.mark.integration
def test_seeds_side_by_side_are_the_seeds_one_after_the_other(root, tmp_path):
    """Byte for byte: each seed has a process and a thread of its own."""
    other = golden.project(tmp_path / "other")
    for place, workers in ((root, 2), (other, 1)):
        golden.check(ARM, golden.run(place, ARM, train__seeds=2, train__workers=workers))
    for seed in (0, 1):
        have_the_same_bytes(*(Layout(place).run(ARM, seed) for place in (root, other)))


def have_the_same_bytes(one: Path, two: Path) -> None:
    """Two runs have the same records, metrics, buffers and weights."""
    names = [p.relative_to(one) for p in one.rglob("*") if p.suffix in (".jsonl", ".gz", ".safetensors")]
    assert len(names) > 10
    assert [name for name in names if (one / name).read_bytes() != (two / name).read_bytes()] == []


def trained(root: Path, changes: dict[str, object]) -> None:
    """What each of several processes does."""
    train.train_arm(golden.configuration(**changes), root, ARM)


@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["auto", pytest.param("fsdp", marks=pytest.mark.long)])
def test_two_processes_that_divide_rollouts_votes_and_updates_give_the_recorded_numbers(root, strategy):
    """With `fsdp` they divide the weights too. Processes of torchrun are in tests/runs/test_rank_death.py."""
    two_ranks(root, trained, root, {"train__devices": 2, "train__strategy": strategy})
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("strategy", ["auto", "fsdp"])
def test_two_processes_give_the_same_bytes_again(root, tmp_path, strategy):
    """The sums of a division have one order."""
    other = golden.project(tmp_path / "other")
    for place in (root, other):
        two_ranks(place, trained, place, {"train__devices": 2, "train__strategy": strategy})
    have_the_same_bytes(*(Layout(place).run(ARM, 0) for place in (root, other)))


def trained_but_not_placed(root: Path, changes: dict[str, object]) -> None:
    """Every seed is finished, and rank 0 is killed before it copies them."""
    with mock.patch.object(train, "place", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
        trained(root, changes)


def trained_late(root: Path, changes: dict[str, object]) -> None:
    """Rank 1 looks for the live folder as late as it can: rank 0 has removed it, or waits. It trains no seed again."""
    if os.environ["RANK"] == "0":
        return trained(root, changes)

    def late(*arguments: Any) -> Origin:
        origin, end = made_from(*arguments), time.monotonic() + 3.0
        while Layout(root).live(origin.key, ARM, 0).is_dir() and time.monotonic() < end:
            time.sleep(0.02)
        return origin

    with mock.patch.object(train, "made_from", late), mock.patch.object(train, "train_seed") as again:
        trained(root, changes)
    assert not again.called
    return None


@pytest.mark.integration
def test_a_process_that_is_late_finds_the_finished_seeds_which_the_first_one_would_remove(root):
    changes = {"train__devices": 2, "train__iterations": 1}
    two_ranks(root, trained_but_not_placed, root, changes)
    assert list(root.glob(".rla/live/*/full/seed-0/finished"))
    two_ranks(root, trained_late, root, changes)
    assert Layout(root).run(ARM, 0).is_dir()
    assert not list(root.glob(".rla/live/[!.]*"))


@pytest.mark.slow
@pytest.mark.integration
def test_two_nodes_of_one_process_that_divide_the_weights_give_the_recorded_numbers(root):
    """Told of each other as torchrun tells them. Two launches of torchrun are in the test below."""
    two_ranks(root, trained, root, {"train__nodes": 2, "train__strategy": "fsdp"}, nodes=2)
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


@pytest.mark.slow
@pytest.mark.integration
def test_four_processes_give_the_recorded_numbers(root):
    golden.check(ARM, in_child(with_params(root, train__devices=4), several(4)))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
@pytest.mark.integration
def test_nodes_that_divide_the_weights_give_the_recorded_numbers(root):
    """Two launches of torchrun, of one process each, as on two machines that share a folder."""
    with_params(root, train__nodes=2, train__strategy="fsdp")
    place = ["--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    settings = {**os.environ, "PYTHONPATH": str(golden.ROOT)}
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "1", *place]
    nodes = [
        subprocess.Popen(
            [*command, "--node-rank", str(node), *TRAIN], cwd=root, env=settings, stderr=subprocess.PIPE
        )
        for node in (0, 1)
    ]
    ended = [(node.communicate(timeout=300)[1].decode()[-3000:], node.returncode) for node in nodes]
    assert [code for _, code in ended] == [0, 0], ended
    golden.check(ARM, golden.kept(Layout(root).run(ARM, 0)))


@pytest.mark.slow
@pytest.mark.integration
def test_an_older_processor_draws_the_same_tokens_and_takes_the_same_decisions(root):
    golden.check(ARM, in_child(with_params(root), TRAIN, **OLDER))


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize(
    "environment",
    [
        {"ATEN_CPU_CAPABILITY": "default"},
        {"ATEN_CPU_CAPABILITY": "avx2"},
        {"MKL_CBWR": "AVX2"},
        {"MKL_CBWR": "AVX512"},
    ],
    ids=str,
)
def test_other_instruction_sets_draw_the_same_tokens_and_take_the_same_decisions(root, environment):
    golden.check(ARM, in_child(with_params(root), TRAIN, **environment))


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("threads", ["2", "4"])
def test_the_number_of_threads_that_the_machine_offers_changes_no_byte(root, tmp_path, threads):
    """A stage computes on one thread, whatever the environment says."""
    other = golden.project(tmp_path / "other")
    golden.check(ARM, golden.run(other, ARM))
    environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    golden.check(ARM, in_child(with_params(root), TRAIN, **environment))
    weights = [sorted(Layout(place).run(ARM, 0).rglob("*.safetensors")) for place in (root, other)]
    assert len(weights[0]) == 2
    assert [file.read_bytes() for file in weights[0]] == [file.read_bytes() for file in weights[1]]
