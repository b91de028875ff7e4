"""The loop's parts on real games and trained models: what they give does not depend on how their work is divided."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import golden_cases as golden
import pytest
import torch
from golden_parts import Parts
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.buffer import TaskBuffer
from rlanything.core.types import Direction, Judgement, Proposal, Trajectory
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import IterationResult
from rlanything.loop.rollout import Assignment, Sampling

pytestmark = pytest.mark.long

ROUNDING = 1e-5
SAMPLING = Sampling(run_seed=11, phase="act", iteration=2, temperature=1.0, max_steps=5)
TRIES = 2
SIZES = st.sampled_from([1, 2, 3, 7, 64])
RANDOM = st.randoms(use_true_random=False)
FEW = settings(max_examples=5, deadline=None, derandomize=True)

Key = tuple[str, int]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return Parts(golden.project(tmp_path_factory.mktemp("parts") / "project"))


@pytest.fixture(scope="module")
def whole(parts) -> dict[Key, tuple[Trajectory, tuple[Judgement, ...]]]:
    """Every task's episodes and votes, all in one call and one batch."""
    parts.limit(256)
    work = [Assignment(k, task, TRIES) for k, task in enumerate(parts.tasks)]
    trajectories = parts.rollout_worker.roll_out(work, SAMPLING)
    return keyed(trajectories, parts.judge.judge(trajectories, 11, 2))


def keyed(
    trajectories: Sequence[Trajectory], judgements: Sequence[tuple[Judgement, ...]]
) -> dict[Key, tuple[Trajectory, tuple[Judgement, ...]]]:
    return {(t.task_id, t.rollout): (t, j) for t, j in zip(trajectories, judgements, strict=True)}


def dealt(rng: random.Random, items: Sequence[object], hands: int) -> list[list[object]]:
    """The items in random order, in `hands` parts of random sizes, some of them empty."""
    parts: list[list[object]] = [[] for _ in range(hands)]
    for item in rng.sample(list(items), len(items)):
        rng.choice(parts).append(item)
    return parts


def logprobs(pair: tuple[Trajectory, tuple[Judgement, ...]]) -> list[float]:
    votes = [x for judgement in pair[1] for vote in judgement.votes for x in vote.logprobs]
    return [x for step in pair[0].steps for x in step.logprobs] + votes


def exact(pair: tuple[Trajectory, tuple[Judgement, ...]]) -> tuple[Trajectory, list[Judgement]]:
    """What must be equal to the last bit: everything but the log-probs."""
    steps = tuple(replace(step, logprobs=()) for step in pair[0].steps)
    judged = [replace(j, votes=tuple(replace(v, logprobs=()) for v in j.votes)) for j in pair[1]]
    return replace(pair[0], steps=steps), judged


def assert_same(
    found: Mapping[Key, tuple[Trajectory, tuple[Judgement, ...]]],
    known: Mapping[Key, tuple[Trajectory, tuple[Judgement, ...]]],
) -> None:
    assert found.keys() == known.keys()
    for key, pair in known.items():
        assert exact(found[key]) == exact(pair)
        assert logprobs(found[key]) == pytest.approx(logprobs(pair), abs=ROUNDING)


@FEW
@given(RANDOM, st.integers(1, 4), SIZES)
def test_tasks_are_played_the_same_in_any_order_company_and_batch(parts, whole, rng, workers, rows):
    parts.limit(rows)
    work = [Assignment(k, task, TRIES) for k, task in enumerate(parts.tasks)]
    played = [t for part in dealt(rng, work, workers) for t in parts.rollout_worker.roll_out(part, SAMPLING)]
    found = keyed(played, [whole[t.task_id, t.rollout][1] for t in played])
    assert_same(found, whole)


@FEW
@given(RANDOM, st.integers(1, 4), SIZES)
def test_episodes_are_judged_the_same_in_any_order_company_and_batch(parts, whole, rng, workers, rows):
    parts.limit(rows)
    found = {}
    for part in dealt(rng, [trajectory for trajectory, _ in whole.values()], workers):
        found |= keyed(part, parts.judge.judge(part, 11, 2))
    assert_same(found, whole)


@pytest.fixture(scope="module")
def wanted(parts):
    """A harder and an easier rewrite of every slot, and what the adapter proposes when asked for all at once."""
    ways = [(k, way, 0.5, f"no progress x{k}") for k in range(len(parts.tasks)) for way in Direction]
    buffer = TaskBuffer.start(parts.tasks)
    parts.limit(256)
    halves = [[w for w in ways if w[1] is way] for way in Direction]
    known: dict[tuple[int, Direction], Proposal] = {}
    for half in halves:
        known |= {(p.slot, p.direction): p for p in parts.adapter.propose(half, buffer, 11, 2)}
    assert {p.task is None for p in known.values()} == {True, False}
    return buffer, halves, known


@FEW
@given(RANDOM, st.integers(1, 4), SIZES)
def test_rewrites_are_the_same_in_any_order_company_and_batch(parts, wanted, rng, workers, rows):
    buffer, halves, known = wanted
    parts.limit(rows)
    for half in halves:
        for part in dealt(rng, half, workers):
            for proposal in parts.adapter.propose(part, buffer, 11, 2):
                assert proposal == known[proposal.slot, proposal.direction]


def collected(parts: Parts, seed: int, rows: int) -> list[IterationResult]:
    """Two iterations: the second decides what the first proposed."""
    parts.limit(rows)
    state, harvests = LoopState(0, TaskBuffer.start(parts.tasks)), []
    for _ in range(2):
        harvests.append(parts.loop(seed).collect(state))
        state = harvests[-1].state
    return harvests


@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from([3, 16, 64]))
def test_an_iteration_decides_the_same_whatever_a_batch_holds(parts, seed, rows):
    for one, other in zip(collected(parts, seed, 256), collected(parts, seed, rows), strict=True):
        for left, right in zip(one.groups, other.groups, strict=True):
            pairs = [
                keyed([e.trajectory for e in g.episodes], [e.judgements for e in g.episodes])
                for g in (left, right)
            ]
            assert_same(*pairs)
        assert (one.events, one.state.pending, one.state.cursor) == (
            other.events,
            other.state.pending,
            other.state.cursor,
        )
        assert one.state.buffer.digest == other.state.buffer.digest
        assert [lesson.advantages for lesson in one.policy] == [lesson.advantages for lesson in other.policy]
        assert [lesson.advantages for lesson in one.reward] == [lesson.advantages for lesson in other.reward]
        assert {k: v for k, v in one.metrics.items() if v == v} == {
            k: v for k, v in other.metrics.items() if v == v
        }


@settings(max_examples=2, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_the_same_iteration_twice_is_the_same_to_the_last_bit(parts, seed):
    first, second = (collected(parts, seed, 64) for _ in range(2))
    assert [h.groups for h in first] == [h.groups for h in second]
    assert torch.get_num_threads() == 1
