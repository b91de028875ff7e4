"""The votes of a stored run: a trajectory that the run does not hold is named, in the error that a replay reports."""

import pytest

from rlanything.core.types import Status, Trajectory
from rlanything.loop.record import NotStored
from rlanything.rewards.step_votes.records import StoredVotes


def test_a_trajectory_without_stored_votes_is_named():
    trajectory = Trajectory("a" * 12, 2, 5, 0, "", (), 1, Status.OK)
    with pytest.raises(NotStored, match=r"iteration 7: the run holds no votes on rollout 5 of task a+$"):
        StoredVotes([]).judge([trajectory], 0, 7, tasks={})
