"""How long it will take: a seed by its own iterations, a stage by its seeds, the whole by what stages took before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rlanything.stages import TRAIN
from rlanything.watch.seeds import Seed
from rlanything.watch.stages import RUNNING, THERE, StageState


@dataclass(frozen=True)
class Left:
    """Time left. unknown: the commands of which nothing says how long they take; they are not in `seconds`."""

    seconds: float
    unknown: tuple[str, ...]
    commands: int
    """How many commands are not done, those that run included."""


def of_seeds(seeds: Sequence[Seed], missing: int, workers: int) -> float | None:
    """Seconds until all seeds of an arm are trained, so many at a time; None before the first iteration of any.

    missing: seeds that have no folder yet. A seed that has not begun takes what the others take.
    """
    paces = [seed.pace for seed in seeds if seed.pace is not None]
    totals = [seed.total for seed in seeds if seed.total is not None]
    if not paces or not totals:
        return None
    pace, whole = sum(paces) / len(paces), sum(paces) / len(paces) * (max(totals) + 1)
    waiting = [seed.left(pace) or 0.0 for seed in seeds] + [whole] * missing
    return _scheduled(waiting, workers)


def _scheduled(work: Iterable[float], workers: int) -> float:
    """When the last of `work` ends, if each worker takes the next one when it is free."""
    busy = [0.0] * max(1, workers)
    for seconds in work:
        first = busy.index(min(busy))
        busy[first] += seconds
    return max(busy)


def with_left(
    stages: Sequence[StageState], seeds: Sequence[Seed], count: int, workers: int
) -> list[StageState]:
    """The stages with the seconds that each still takes. count: seeds of an arm; workers: how many at a time."""
    return [replace(one, left=_left(one, stages, seeds, count, workers)) for one in stages]


def of_all(stages: Sequence[StageState]) -> Left:
    """Everything that is not done: what runs ends first, the rest follows one by one, as DVC runs it."""
    todo = [one for one in stages if one.state != THERE]
    running = [one.left for one in todo if one.state == RUNNING and one.left is not None]
    later = [one.left for one in todo if one.state != RUNNING and one.left is not None]
    unknown = tuple(one.words for one in todo if one.left is None)
    return Left(max(running, default=0.0) + sum(later), unknown, len(todo))


def _left(
    one: StageState, stages: Sequence[StageState], seeds: Sequence[Seed], count: int, workers: int
) -> float | None:
    if one.state == THERE:
        return 0.0
    if one.name == TRAIN:
        own = [seed for seed in seeds if seed.arm == one.arm and seed.state != "finished"]
        if own and (found := of_seeds(own, max(0, count - len(own)), workers)) is not None:
            return found
    took = one.seconds if one.seconds is not None else _like(one, stages)
    if took is None and one.name == TRAIN:
        took = of_seeds(_fresh(seeds), count - 1, workers)
    return None if took is None else max(0.0, took - (one.spent or 0.0))


def _like(one: StageState, stages: Sequence[StageState]) -> float | None:
    """What the same stage took for other arms, on average."""
    found = [other.seconds for other in stages if other.name == one.name and other.seconds is not None]
    return sum(found) / len(found) if found else None


def _fresh(seeds: Sequence[Seed]) -> list[Seed]:
    """The seed with the most iterations, as if it had none: what a new one will take."""
    timed = [seed for seed in seeds if seed.pace is not None and seed.total is not None]
    best = max(timed, key=lambda seed: len(seed.laps), default=None)
    return [] if best is None else [replace(best, rows=(), state="waiting", changed=0.0)]
