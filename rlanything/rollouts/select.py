"""Which rollout of a run is shown: what was asked for, or else one that tells most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.core.errors import ConfigError
from rlanything.core.signals import accuracy
from rlanything.loop.record import EpisodeRecord
from rlanything.repro.stored import StoredIteration
from rlanything.rollouts.runs import NamedRun

ROLLOUTS = "rollouts"


@dataclass(frozen=True)
class Tries:
    """The rollouts of one task in one iteration. proposal: the task is a rewrite that is tried."""

    slot: int
    proposal: bool
    records: tuple[EpisodeRecord, ...]

    @property
    def outcomes(self) -> list[int]:
        """Outcomes of the rollouts that count."""
        trajectories = (record.episode.trajectory for record in self.records)
        return [t.outcome for t in trajectories if t.counts]

    @property
    def accuracy(self) -> float | None:
        """acc(q); None when every rollout crashed."""
        return accuracy(self.outcomes) if self.outcomes else None


@dataclass(frozen=True)
class Chosen:
    """One rollout, the others of its task, and what else can be selected."""

    stored: StoredIteration
    tries: Tries
    record: EpisodeRecord
    iterations: Sequence[int]
    slots: Sequence[int]
    rollouts: Sequence[int]


def choose(
    run: NamedRun,
    iteration: int | None = None,
    slot: int | None = None,
    rollout: int | None = None,
    *,
    proposal: bool = False,
) -> Chosen:
    """The rollout that was asked for. What is not asked for is chosen.

    Then it is the last iteration; the first task with rollouts that train and outcomes that differ; its first rollout
    that trains. proposal: only rewrites that were tried. Raises `ConfigError` naming the nearest number."""
    iterations = with_rollouts(run)
    iteration = one_of("--iteration", iterations[-1] if iteration is None else iteration, iterations)
    stored = StoredIteration(run.stored, iteration)
    groups = grouped(stored)
    slots = sorted({tries.slot for tries in groups})
    where = f"{run.name}, iteration {iteration}"
    if not groups:
        raise ConfigError(f"{where}: no rollouts are stored")
    if slot is not None:
        tries = _task(groups, one_of("--slot", slot, slots), proposal, where)
    else:
        tries = max(_rewrites(groups, where) if proposal else groups, key=_telling)
    rollouts = [record.episode.trajectory.rollout for record in tries.records]
    first = max(tries.records, key=_trains).episode.trajectory.rollout
    number = one_of("--rollout", first if rollout is None else rollout, rollouts)
    return Chosen(stored, tries, tries.records[rollouts.index(number)], iterations, slots, rollouts)


def with_rollouts(run: NamedRun) -> list[int]:
    """The iterations with rollouts, one at least. The last one of a run only measures: its file is empty.

    Raises `ConfigError` for a run without rollouts."""
    found = run.stored.recorded(ROLLOUTS)
    iterations = found if not found or run.stored.records(found[-1], ROLLOUTS) else found[:-1]
    if not iterations:
        why = "they were not kept (train.save_rollouts)" if run.finished else "no iteration is published yet"
        raise ConfigError(f"{run.name}: no rollouts are stored: {why}")
    return iterations


def grouped(stored: StoredIteration) -> list[Tries]:
    """The rollouts by task, in stored order. Raises `ConfigError` where two of a task have one number."""
    found: dict[tuple[int, bool], list[EpisodeRecord]] = {}
    known: set[tuple[int, bool, int]] = set()
    for record in stored.episodes:
        trajectory = record.episode.trajectory
        place = trajectory.slot, record.proposal, trajectory.rollout
        if place in known:
            file = stored.run.file(stored.iteration, ROLLOUTS)
            raise ConfigError(
                f"{file}: slot {trajectory.slot}: rollout {trajectory.rollout} stands there twice"
            )
        known.add(place)
        found.setdefault(place[:2], []).append(record)
    return [Tries(slot, proposal, tuple(tries)) for (slot, proposal), tries in found.items()]


def _trains(record: EpisodeRecord) -> bool:
    return record.episode.advantages is not None


def _telling(tries: Tries) -> tuple[bool, bool]:
    """Greater for a task that shows more; `max` takes the first of equals."""
    return any(map(_trains, tries.records)), len(set(tries.outcomes)) > 1


def _rewrites(groups: Sequence[Tries], where: str) -> list[Tries]:
    found = [tries for tries in groups if tries.proposal]
    if not found:
        raise ConfigError(f"--proposal: {where}: it tried no rewrite")
    return found


def _task(groups: Sequence[Tries], slot: int, proposal: bool, where: str) -> Tries:
    of_slot = [tries for tries in groups if tries.slot == slot]
    if not proposal:
        return of_slot[0]
    rewrites = [tries.slot for tries in groups if tries.proposal]
    for tries in of_slot:
        if tries.proposal:
            return tries
    held = f"rewrites were tried in slots {numbers(rewrites)}" if rewrites else "it tried no rewrite"
    raise ConfigError(f"--proposal: {where}, slot {slot}: no rewrite was tried there; {held}")


def one_of(option: str, value: int, known: Sequence[int]) -> int:
    """`value` if it is one of the known ones. Raises `ConfigError` naming the nearest."""
    if value not in known:
        nearest = min(known, key=lambda number: abs(number - value))
        raise ConfigError(f"{option} {value}: unknown; the nearest is {nearest}. Known: {numbers(known)}")
    return value


def numbers(known: Sequence[int]) -> str:
    """Numbers in a message, runs of them shortened: 0 to 3, 7."""
    parts: list[list[int]] = []
    for number in sorted(set(known)):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    words = [f"{p[0]} to {p[-1]}" if len(p) > 2 else ", ".join(map(str, p)) for p in parts]
    return ", ".join(words)
