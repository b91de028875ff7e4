"""The measurements run, and the caches save the work that they are there to save."""

from __future__ import annotations

from benchmarks import sampling

TINY = sampling.Workload(
    tasks=2,
    rollouts=2,
    turns=2,
    prompt=20,
    observation=6,
    response=4,
    trajectories=2,
    steps=3,
    votes=2,
    reasoning=4,
)


def test_every_measurement_runs():
    measured = sampling.measure(TINY)
    assert measured.keys() == {
        "episodes_native",
        "episodes_generate",
        "actions_native",
        "votes_group",
        "votes_separate",
        "votes_generate",
    }
    assert all(rate > 0 for rate in measured.values())


def test_votes_are_asked_in_one_group_per_trajectory():
    requests = sampling.vote_requests(TINY)
    assert len(requests) == 2 * 3 * 2
    assert len({request.seed for request in requests}) == len(requests)
    assert {request.group for request in requests} == {"0", "1"}
