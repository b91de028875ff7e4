"""Pairwise accuracy: whether the votes prefer a good step to a bad one, where the policy's advantages compare them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, lists, sampled_from, tuples
from scipy.stats import mannwhitneyu

from rlanything.core.signals import policy_advantages
from rlanything.core.types import Judgement, Status, Step, Trajectory, Vote
from rlanything.rewards.step_votes.evaluation import pairwise
from rlanything.rewards.step_votes.labels import LabelledTrajectory

M = 4
MEANS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""The mean votes that M votes can have."""


def labelled(*labels: bool | None, name: str = "t") -> LabelledTrajectory:
    steps = tuple(Step((1,), (2,), (-0.1,), ((),), "go", True, "seen") for _ in labels)
    return LabelledTrajectory(Trajectory(name, 0, 0, 0, "first", steps, 1, Status.OK), labels)


def voted(*means: float) -> list[Judgement]:
    """A judgement of M votes for each mean."""
    return [
        Judgement((), tuple(Vote(1 if k < M * (1 + mean) / 2 else -1, "", (), ()) for k in range(M)))
        for mean in means
    ]


def test_pairs_are_a_good_and_a_bad_step_of_the_same_index_and_task_and_a_tie_is_half_a_hit():
    panel = [labelled(True, True), labelled(False, False), labelled(False, None), labelled(False, name="u")]
    judged = [voted(0.5, -1), voted(-0.5, 1), voted(0.5, 0.5), voted(0)]
    assert pairwise(panel, judged) == {"t": (2 + 1 + 0, 6), "u": (0, 0)}


def test_a_step_that_the_judge_was_not_asked_about_is_in_no_pair():
    panel = [labelled(True, True), labelled(False, False)]
    assert pairwise(panel, [voted(1), voted(-1, -1)]) == {"t": (2, 2)}


def test_a_vote_without_a_verdict_does_not_count_and_a_step_without_one_lies_between():
    unread = Judgement((), (Vote(None, "", (), ()),) * M)
    half = Judgement((), (Vote(1, "", (), ()), *unread.votes[1:]))
    panel = [labelled(True), labelled(True), labelled(False)]
    assert pairwise(panel, [[half], [unread], voted(0)]) == {"t": (2 + 1, 4)}


@given(lists(tuples(sampled_from(MEANS[:-1]), booleans()), min_size=2), sampled_from([0, 0.5]))
def test_neither_the_order_nor_the_advantages_change_when_all_votes_rise(steps, rise):
    panel = [labelled(good) for _, good in steps]
    before, after = ([mean + more for mean, _ in steps] for more in (0, rise))
    assert pairwise(panel, [voted(x) for x in after]) == pairwise(panel, [voted(x) for x in before])
    raised = policy_advantages([[x] for x in after])
    assert np.array(raised) == pytest.approx(np.array(policy_advantages([[x] for x in before])))


@given(lists(tuples(sampled_from(MEANS), booleans()), min_size=2))
def test_on_one_index_it_is_the_area_under_the_curve(steps):
    means, labels = (np.array(column) for column in zip(*steps, strict=True))
    hits, total = pairwise([labelled(bool(good)) for good in labels], [voted(mean) for mean in means])["t"]
    assert total == 2 * labels.sum() * (~labels).sum()
    if total:
        assert hits / 2 == mannwhitneyu(means[labels], means[~labels]).statistic
