"""What two arms, or an arm under two settings, made of their tasks: seed by seed, and on average over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.compare.three_way import agreement_of
from rlanything.buffer.views.compare.two_way import diff_page
from rlanything.buffer.views.find.arms import seeds_of
from rlanything.buffer.views.find.names import find
from rlanything.buffer.views.find.source import Source
from rlanything.core.types import EventKind, Json
from rlanything.report.results import statistics
from rlanything.report.results.statistics import COUNTS, SHARES, Contrast, Limits

METRICS: Mapping[str, Limits] = {"harder": COUNTS, "easier": COUNTS, "accepted": SHARES, "in_band": SHARES}
"""What is compared of every run, and between which values it lies. accepted: of the rewrites that were rolled out."""


@dataclass(frozen=True)
class Run:
    """One seed of an arm, from its start to its end.

    harder, easier: slots whose task became so. accepted, tried: rewrites taken, of those rolled out. in_band: the share
    of measured slots at the end whose accuracy is in the band of the run's project; None where no rollouts were kept.
    """

    harder: int
    easier: int
    accepted: int
    tried: int
    in_band: float | None

    def value(self, metric: str) -> float | None:
        """The value of one of `METRICS`. None where it is not known."""
        if metric == "accepted":
            return self.accepted / self.tried if self.tried else None
        return {"harder": self.harder, "easier": self.easier, "in_band": self.in_band}[metric]


def diff_arms(a: str, b: str, *, root: Path = Path()) -> dict[str, Json]:
    """How far B's buffers differ from A's, paired by seed. Names: `full`, `low:full`, `HEAD:full`, runs/full.

    Differences are B minus A with 95 % intervals over seeds; p is Holm's over the metrics. Raises `TaskBufferError`
    for a name that is no arm, and where the two have no seed in common.
    """
    names = {side: _required(name, root) for side, name in (("a", a), ("b", b))}
    both = [seed for seed in names["a"] if seed in names["b"]]
    if not both:
        raise TaskBufferError(
            f"{a} has {', '.join(names['a'])}, {b} has {', '.join(names['b'])}: no seed in common"
        )
    ends = {side: [find(f"{name}/{seed}", root) for seed in both] for side, name in (("a", a), ("b", b))}
    runs = {side: [_run(end) for end in found] for side, found in ends.items()}
    starts = [_start(end) for found in ends.values() for end in found]
    alike = len({start.buffer.digest for start in starts}) == 1
    pairs = [
        _kappa(starts[0], one, two) if alike else None for one, two in zip(ends["a"], ends["b"], strict=True)
    ]
    return {
        "format": "rlanything buffer diff of arms",
        "schema": 1,
        "a": a,
        "b": b,
        "one_start": alike,
        "seeds": [
            {"seed": seed, "a": asdict(one), "b": asdict(two), "kappa": kappa}
            for seed, one, two, kappa in zip(both, runs["a"], runs["b"], pairs, strict=True)
        ],
        "differences": {
            metric: _contrast(found) for metric, found in _differences(runs["a"], runs["b"]).items()
        },
        "kappa": {
            "between": pairs,
            **{
                f"seeds_{side}": list(_among(starts[0], found)) if alike else []
                for side, found in ends.items()
            },
        },
    }


def _required(name: str, root: Path) -> list[str]:
    if found := seeds_of(name, root):
        return found
    find(name, root)  # the error for an unknown name offers the nearest ones
    raise TaskBufferError(f"{name} is no arm; an arm is the folder of its seeds, such as full or low:full")


def _start(end: Source) -> Source:
    return end.at(end.run_buffer.iterations[0])


def _run(end: Source) -> Run:
    page = diff_page(_start(end), end, details=False)
    kinds = [event.kind for event in end.events]
    accepted = kinds.count(EventKind.ACCEPTED)
    counts, inside = page["counts"], page["difficulty"]["inside"]["new"]
    tried = accepted + kinds.count(EventKind.REJECTED)
    return Run(counts["harder"], counts["easier"], accepted, tried, inside["share"])


def _kappa(start: Source, one: Source, two: Source) -> float | None:
    kappa: float | None = agreement_of(start, one, two)["kappa"]
    return kappa


def _among(start: Source, ends: Sequence[Source]) -> Iterator[float | None]:
    """Kappa of every pair of seeds of one arm."""
    return (_kappa(start, one, two) for one, two in combinations(ends, 2))


def _differences(a: Sequence[Run], b: Sequence[Run]) -> dict[str, Contrast]:
    """Metric -> B minus A, of the seeds for which both are known; absent where there is none."""
    found: dict[str, Contrast] = {}
    for metric, limits in METRICS.items():
        panels = [statistics.seed_means(_values(side, metric), limits) for side in (b, a)]
        if panels[0] is not None and panels[1] is not None:
            contrast = statistics.tested(panels[0], panels[1])
            found |= {metric: contrast} if contrast is not None else {}
    return statistics.corrected(found)


def _values(runs: Sequence[Run], metric: str) -> dict[int, list[float]]:
    known = {seed: run.value(metric) for seed, run in enumerate(runs)}
    return {seed: [value] for seed, value in known.items() if value is not None}


def _contrast(found: Contrast) -> dict[str, Json]:
    return {**asdict(found.difference), "p": found.p}
