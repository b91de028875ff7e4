"""The votes that a run stored. They are part of its episodes' records (`loop.record`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rlanything.core.types import Judgement, Task, Trajectory
from rlanything.loop.record import EpisodeRecord, NotStored


class StoredVotes:
    """The votes of one iteration, as a `VoteSource`."""

    def __init__(self, stored: Iterable[EpisodeRecord]) -> None:
        episodes = [record.episode for record in stored]
        self.judgements = {_key(episode.trajectory): episode.judgements for episode in episodes}

    def judge(
        self, trajectories: Sequence[Trajectory], run_seed: int, iteration: int, *, tasks: Mapping[str, Task]
    ) -> list[tuple[Judgement, ...]]:
        """The stored judgements of stored trajectories. Raises `NotStored` for a trajectory without any."""
        found = []
        for trajectory in trajectories:
            if _key(trajectory) not in self.judgements:
                raise NotStored(
                    f"iteration {iteration}: the run holds no votes on rollout {trajectory.rollout} of task "
                    f"{trajectory.task_id[:12]}"
                )
            found.append(self.judgements[_key(trajectory)])
        return found


def _key(trajectory: Trajectory) -> tuple[int, str, int]:
    return trajectory.slot, trajectory.task_id, trajectory.rollout
