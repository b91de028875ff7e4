"""What the reward models said about the damage, with intervals over seeds and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rlanything.checks.corruption.declare import Corruption
from rlanything.checks.corruption.measure import Answers, Asked, Counts
from rlanything.config import BASE
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.evaluations import Panels, panel_of
from rlanything.report.results.evidence import HITS
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import Contrast, Estimate

SHARE = Metric("share", "share", {}, HITS)
"""Of the steps that count."""
Measured = Mapping[str, Mapping[int, Answers]]
"""arm -> seed -> answers."""


@dataclass(frozen=True)
class Row:
    """One reward model and one kind of damage. Values are shares of steps; differences are paired by seed and task.

    noticed, before: damaged steps that it calls bad, and the same steps undamaged. alarm: their difference.
    later, undisturbed: labelled steps after the damage that it judges rightly, and the same without the damage. loss:
    their difference. noticed_over_base, later_over_base: minus the base's, p by Holm over the arms; None for the base.
    """

    arm: str
    kind: str
    noticed: Estimate
    before: Estimate
    alarm: Contrast | None
    later: Estimate | None
    undisturbed: Estimate | None
    loss: Contrast | None
    noticed_over_base: Contrast | None
    later_over_base: Contrast | None


@dataclass(frozen=True)
class Found:
    """Everything that a corruption check found. keys: arm -> seed -> the key of what was asked."""

    declared: Corruption
    seeds: tuple[int, ...]
    tasks: int
    rows: tuple[Row, ...]
    keys: Mapping[str, Mapping[int, str]]

    def of(self, kind: str) -> list[Row]:
        """The rows of one kind of damage, the base's first."""
        return [row for row in self.rows if row.kind == kind]


def read(declared: Corruption, models: Sequence[Asked]) -> Found:
    """What the reward models said. Raises `ConfigError` for a file that cannot be read."""
    measured: dict[str, dict[int, Answers]] = {}
    keys: dict[str, dict[int, str]] = {}
    for one in models:
        measured.setdefault(one.arm, {})[one.seed] = one.answers()
        keys.setdefault(one.arm, {})[one.seed] = one.key
    first = measured[BASE]
    tasks = {task for answers in first.values() for kind in answers.kinds.values() for task in kind}
    rows = tuple(row for kind in declared.kinds for row in _rows(kind, measured))
    return Found(declared, tuple(first), len(tasks), rows, keys)


def _rows(kind: str, measured: Measured) -> Iterator[Row]:
    found = Comparison(_panels(kind, measured), (SHARE,))
    trained = [arm for arm in measured if arm != BASE]

    def over_base(count: str) -> Mapping[tuple[str, str], Contrast]:
        return found.contrasts(((_name(arm, count), _name(BASE, count)) for arm in trained), SHARE)

    def estimate(arm: str, count: str) -> Estimate | None:
        return found.estimate(_name(arm, count), SHARE)

    def within(arm: str, count: str, other: str) -> Contrast | None:
        pair = _name(arm, count), _name(arm, other)
        return found.contrasts([pair], SHARE).get(pair)

    noticed, later = over_base("noticed"), over_base("later")
    for arm in measured:
        seen, before = estimate(arm, "noticed"), estimate(arm, "before")
        if seen is not None and before is not None:
            yield Row(
                arm,
                kind,
                seen,
                before,
                within(arm, "noticed", "before"),
                estimate(arm, "later"),
                estimate(arm, "undisturbed"),
                within(arm, "later", "undisturbed"),
                noticed.get((_name(arm, "noticed"), _name(BASE, "noticed"))),
                later.get((_name(arm, "later"), _name(BASE, "later"))),
            )


def _panels(kind: str, measured: Measured) -> Panels:
    """One panel for each reward model and each count, by `_name`."""
    panels: Panels = {}
    for arm, by_seed in measured.items():
        for count in Counts.model_fields:
            cells = {
                seed: HITS.channels(
                    {
                        task: getattr(c, count)
                        for task, c in answers.kinds[kind].items()
                        if getattr(c, count)[1]
                    }
                )
                for seed, answers in by_seed.items()
            }
            panel = panel_of(SHARE, cells)
            panels[_name(arm, count)] = {} if panel is None else {SHARE.name: panel}
    return panels


def _name(arm: str, count: str) -> str:
    return f"{arm}/{count}"
