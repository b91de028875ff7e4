"""Random trajectories and judgements for property tests."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from rlanything.core.types import Judgement, Status, Step, Trajectory, Vote

relaxed = settings(deadline=None, max_examples=100, derandomize=True, database=None)
"""The same examples on every machine, so that a test that passed keeps passing."""

outcomes = st.sampled_from([1, -1])
votes = st.lists(st.sampled_from([1, -1, None]), min_size=1, max_size=8)
ids = st.lists(st.integers(0, 200_000), max_size=8).map(tuple)
logprobs = st.floats(-50.0, 0.0)
texts = st.text(max_size=20)
names = st.lists(st.integers(0, 3).map(lambda k: f"{k:064x}"), max_size=2).map(tuple)
"""Of pictures."""


@st.composite
def steps(draw, before):
    """A turn whose prompt extends `before`, shares a part of it, or has nothing to do with it."""
    kept = draw(st.integers(0, len(before)))
    prompt = before[: draw(st.sampled_from([0, kept, len(before)]))] + draw(ids)
    response = draw(ids)
    allowed = tuple((token, token + 1) for token in response) if draw(st.booleans()) else ()
    chances = tuple(draw(logprobs) for _ in response)
    said = draw(texts), draw(st.booleans()), draw(texts)
    return Step(prompt, response, chances, allowed, *said, images=draw(names))


@st.composite
def trajectories(draw):
    """An episode of up to four turns."""
    made, before = [], ()
    for _ in range(draw(st.integers(0, 4))):
        made.append(draw(steps(before)))
        before = made[-1].prompt_ids + made[-1].response_ids
    return Trajectory(
        task_id=draw(texts),
        slot=draw(st.integers(0, 1000)),
        rollout=draw(st.integers(0, 31)),
        seed=draw(st.integers(0, 2**63 - 1)),
        first_observation=draw(texts),
        steps=tuple(made),
        outcome=draw(outcomes),
        status=draw(st.sampled_from(Status)),
        error=draw(texts),
        first_images=draw(names),
    )


@st.composite
def judgements(draw):
    """Questions about one trajectory: most share the beginning of the one before."""
    made, before = [], ()
    for _ in range(draw(st.integers(0, 4))):
        prompt = before[: draw(st.integers(0, len(before)))] + draw(ids)
        answers = []
        for verdict in draw(votes):
            response = draw(ids)
            answers.append(Vote(verdict, draw(texts), response, tuple(draw(logprobs) for _ in response)))
        made.append(Judgement(prompt, tuple(answers)))
        before = prompt
    return tuple(made)
