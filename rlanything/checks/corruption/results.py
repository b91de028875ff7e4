"""What the reward models said about the damage, with intervals over seeds and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlanything.checks.corruption.declare import Corruption
from rlanything.checks.corruption.measure import Answers, Asked, Counts
from rlanything.config import BASE
from rlanything.report.results import statistics
from rlanything.report.results.evaluations import panel_of
from rlanything.report.results.evidence import HITS
from rlanything.report.results.metrics import Metric
from rlanything.report.results.statistics import Contrast, Estimate, Panel

SHARE = Metric("share", "share", {}, HITS)
"""Of the steps that count."""
QUESTIONS = ("alarm", "loss", "alarm_over_base", "loss_over_base")
"""What is tested; fields of `Row`."""
Measured = Mapping[str, Mapping[int, Answers]]
"""arm -> seed -> answers."""


@dataclass(frozen=True)
class Row:
    """One reward model and one kind of damage. Values are shares of steps; differences are paired by seed and task.

    noticed, before: damaged steps that it calls bad, and the same steps undamaged. alarm: their difference.
    later, undisturbed: labelled steps after the damage that it judges rightly, and the same without the damage. loss:
    their difference. alarm_over_base, loss_over_base: what the damage changes here, minus what it changes in the base's
    reward model; None for the base. p of each of these four is Holm's over all rows of a check.
    """

    arm: str
    kind: str
    noticed: Estimate
    before: Estimate
    alarm: Contrast | None
    later: Estimate | None
    undisturbed: Estimate | None
    loss: Contrast | None
    alarm_over_base: Contrast | None
    loss_over_base: Contrast | None


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
    rows = _corrected(row for kind in declared.kinds for row in _rows(kind, measured))
    return Found(declared, tuple(first), len(tasks), rows, keys)


def _rows(kind: str, measured: Measured) -> Iterator[Row]:
    shares = {
        arm: {c: _panel(by_seed, kind, c) for c in Counts.model_fields} for arm, by_seed in measured.items()
    }
    alarms = {arm: _change(by_seed, kind, "noticed", "before") for arm, by_seed in measured.items()}
    losses = {arm: _change(by_seed, kind, "later", "undisturbed") for arm, by_seed in measured.items()}
    alarms_over, losses_over = _over_base(alarms), _over_base(losses)
    for arm, found in shares.items():
        noticed, before, later, undisturbed = (
            statistics.estimate(found[count]) for count in Counts.model_fields
        )
        if noticed is not None and before is not None:
            yield Row(
                arm,
                kind,
                noticed,
                before,
                _from_zero(alarms[arm]),
                later,
                undisturbed,
                _from_zero(losses[arm]),
                alarms_over.get(arm),
                losses_over.get(arm),
            )


def _corrected(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Every question is asked of all kinds of damage and all reward models, so its p are corrected together."""
    found = list(rows)
    for question in QUESTIONS:
        asked = {place: c for place, row in enumerate(found) if (c := getattr(row, question)) is not None}
        for place, contrast in statistics.corrected(asked).items():
            change: dict[str, Any] = {question: contrast}
            found[place] = replace(found[place], **change)
    return tuple(found)


def _from_zero(change: Panel | None) -> Contrast | None:
    """How far what the damage changes is from nothing."""
    if change is None:
        return None
    return statistics.contrast(change, replace(change, hits=0 * change.hits, limits=(0.0, 0.0)))


def _over_base(changes: Mapping[str, Panel | None]) -> dict[str, Contrast]:
    """Arm -> what the damage changes there, minus what it changes for the base."""
    base = changes[BASE]
    found = {
        arm: statistics.contrast(change, base)
        for arm, change in changes.items()
        if arm != BASE and change is not None and base is not None
    }
    return {arm: contrast for arm, contrast in found.items() if contrast is not None}


def _panel(by_seed: Mapping[int, Answers], kind: str, count: str) -> Panel | None:
    """The steps that count, of those asked about."""
    return panel_of(
        SHARE,
        {
            seed: {
                task: (getattr(c, count),) for task, c in answers.kinds[kind].items() if getattr(c, count)[1]
            }
            for seed, answers in by_seed.items()
        },
    )


def _change(by_seed: Mapping[int, Answers], kind: str, after: str, before: str) -> Panel | None:
    """What the damage changes: the steps that count with it, minus those that count without it, of the same steps."""
    cells = {
        seed: {
            task: ((getattr(c, after)[0] - getattr(c, before)[0], getattr(c, after)[1]),)
            for task, c in answers.kinds[kind].items()
            if getattr(c, after)[1]
        }
        for seed, answers in by_seed.items()
    }
    panel = panel_of(SHARE, cells)
    return None if panel is None else replace(panel, limits=(-1.0, 1.0))
