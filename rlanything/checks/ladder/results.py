"""What a finished ladder found: gains over the zero arm, controls, reward models' accuracy, power, the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.special import bdtri

from rlanything.checks.ladder.declare import CEILING, LADDER_CONTROLS, Ladder, Point
from rlanything.checks.ladder.verdict import Criterion, Verdict, judge
from rlanything.checks.workspace import AGAIN
from rlanything.config import BASE, BASE_COOLED, Config
from rlanything.core.splits import on_panel
from rlanything.files.reader import read_object
from rlanything.report.results import statistics
from rlanything.report.results.comparison import Comparison
from rlanything.report.results.details import read_extras
from rlanything.report.results.evaluations import ReportError, read_evaluation
from rlanything.report.results.metrics import Metric, metrics_for, named
from rlanything.report.results.power import Components
from rlanything.report.results.statistics import Contrast, Estimate, Panel
from rlanything.runs.layout import Layout

COOLED = (BASE_COOLED, CEILING)
"""Controls that are measured at their best temperature."""
PROCESS, PLAIN = "rm_process", "rm_process_plain"
TESTS = "ut"
"""Of reward models that write tests: the share of right ones, which is what the ladder's accuracy is there."""


@dataclass(frozen=True)
class Row:
    """One arm or control on one panel. gain: over the zero arm, p corrected by Holm over the ladder's arms."""

    arm: str
    point: Point | None
    value: Estimate
    gain: Contrast | None

    @property
    def accuracy(self) -> float:
        """Of the oracle that judged; 0 where none did."""
        return 0.0 if self.point is None else self.point.accuracy


@dataclass(frozen=True)
class Mark:
    """Where a measured reward model lies on the axis of accuracies: `base`'s, or that of an arm.

    accuracy: of the majority of its votes, balanced; of a model that writes tests, the share of right ones. single: the
    place on the axis, see `single_vote`.
    """

    arm: str
    accuracy: float
    plain: float | None
    single: float


@dataclass(frozen=True)
class Detectable:
    """The smallest difference that so many seeds and games can show, and the standard error of a difference."""

    seeds: int
    games: int
    difference: float
    standard_error: float


@dataclass(frozen=True)
class Found:
    """Everything that a ladder found. Rows, components and power by panel."""

    ladder: Ladder
    metrics: tuple[Metric, ...]
    """The policy's success on each panel."""
    games: Mapping[str, int]
    rows: Mapping[str, tuple[Row, ...]]
    marks: tuple[Mark, ...]
    components: Mapping[str, Components]
    power: Mapping[str, tuple[Detectable, ...]]
    temperatures: Mapping[str, Mapping[str, Any]]
    verdict: Verdict
    crashed: Mapping[str, Mapping[str, int]]
    """arm or control -> panel -> episodes of its measurement that were left out."""

    def row(self, panel: str, arm: str) -> Row | None:
        """One arm or control on a panel; None where it was not measured."""
        return next((row for row in self.rows[panel] if row.arm == arm), None)


def read(root: Path, ladder: Ladder, config: Config) -> Found:
    """What the workspace at `root` holds.

    Raises `ReportError` for an evaluation that cannot be read, and for one without an episode that counts.
    """
    layout = Layout(root)
    names = [BASE, *ladder.trained, *LADDER_CONTROLS]
    files = {name: layout.evaluation(name) for name in names}
    panels = {name: read_evaluation(file, name, AGAIN) for name, file in files.items() if file.is_file()}
    success = tuple(metric for metric in metrics_for(config) if metric.is_success)
    for name in ladder.trained:
        for metric in success:
            if metric.name not in panels.get(name, {}):
                raise ReportError(f"{files[name]}: no episode on the panel {metric.name} counts; {AGAIN}")
    found = Comparison(panels, metrics_for(config))
    rows = {metric.name: tuple(_rows(found, ladder, metric)) for metric in success}
    components = {metric.name: _components(panels, ladder, metric.name) for metric in success}
    games = {metric.name: len(panels[ladder.zero][metric.name].tasks) for metric in success}
    power = {name: tuple(_power(ladder, components[name], games[name])) for name in rows}
    criteria = _criteria(ladder, rows[ladder.fitness.panel], panels, power[ladder.fitness.panel])
    marks = tuple(_marks(found, ladder, config))
    temperatures = {name: _temperatures(layout.evaluation(name)) for name in COOLED if name in panels}
    crashed = read_extras(root, names, AGAIN).crashed
    return Found(
        ladder, success, games, rows, marks, components, power, temperatures, judge(criteria), crashed
    )


def _temperatures(evaluation: Path) -> dict[str, Any]:
    """The best temperature of a control, and the success at every one that was tried."""
    found = read_object(evaluation)
    return {key: found[key] for key in ("temperature", "shares")}


def _rows(found: Comparison, ladder: Ladder, metric: Metric) -> Iterator[Row]:
    points = {point.arm: point for point in ladder.points}
    trained = [arm for arm in ladder.trained if arm != ladder.zero]
    gains = found.contrasts(((arm, ladder.zero) for arm in trained), metric)
    others = [BASE, *LADDER_CONTROLS]
    gains |= found.contrasts(((name, ladder.zero) for name in others if name in found.panels), metric)
    for arm in (BASE, *LADDER_CONTROLS, *ladder.trained):
        value = found.estimate(arm, metric) if arm in found.panels else None
        if value is not None:
            yield Row(arm, points.get(arm), value, gains.get((arm, ladder.zero)))


def single_vote(majority: float, votes: int) -> float:
    """q of the oracle with independent errors whose majority of so many votes is right with this probability.

    It errs as often on good steps as on bad ones, so its balanced accuracy is its accuracy. A tie counts as an error.
    """
    return float(bdtri(votes // 2, votes, 1.0 - majority))


def _marks(found: Comparison, ladder: Ladder, config: Config) -> Iterator[Mark]:
    """The reward models that were trained and measured: the base's, and those that arms of `compare` ended with.

    Their accuracy is that on the reward model's first panel.
    """
    panels, base = config.tasks.reward_panels, [BASE] if _is_trained(config) else []
    named_so = {name: named(on_panel(name, panels[0], panels)) for name in (PROCESS, PLAIN, TESTS)}
    for arm in (*base, *ladder.compare):
        measured = {
            name: value.mean
            for name, metric in named_so.items()
            if (value := found.estimate(arm, metric)) is not None
        }
        if PROCESS in measured:
            single = single_vote(measured[PROCESS], config.evaluate.votes)
            yield Mark(arm, measured[PROCESS], measured.get(PLAIN), single)
        elif TESTS in measured:
            yield Mark(arm, measured[TESTS], None, measured[TESTS])


def _is_trained(config: Config) -> bool:
    """Whether the first reward model was trained: a check that has no use for it gives it one step."""
    return config.model.embedded is None or config.bootstrap.reward.steps > 1


def _components(panels: Mapping[str, Mapping[str, Panel]], ladder: Ladder, metric: str) -> Components:
    """The mean over the ladder's judges of the components of their differences from the zero arm."""
    found = []
    for point in ladder.points:
        cells = statistics.differences(panels[point.arm][metric], panels[ladder.zero][metric])
        if cells is not None and min(cells.shape) > 1:
            found.append(Components.of(cells))
    return Components.mean(found)


def _power(ladder: Ladder, components: Components, games: int) -> Iterator[Detectable]:
    """This ladder's own numbers first, then the declared ones."""
    wanted = ladder.power
    sizes = [(ladder.seeds, games)]
    sizes += [(n, k) for n in wanted.seeds or (ladder.seeds,) for k in wanted.games or (games,)]
    for n, k in dict.fromkeys(sizes):
        least = components.detectable(n, k, wanted.power, wanted.alpha)
        yield Detectable(n, k, least, components.standard_error(n, k))


def _criteria(
    ladder: Ladder,
    rows: tuple[Row, ...],
    panels: Mapping[str, Mapping[str, Panel]],
    power: tuple[Detectable, ...],
) -> Iterator[Criterion]:
    """What the regime must be to compare arms in it."""
    fitness, gains = ladder.fitness, {row.arm: row.gain for row in rows}
    perfect = gains.get(Point(1.0, 0.0).arm)
    yield Criterion(
        f"perfect votes above {ladder.zero}, points",
        None if perfect is None else 100 * perfect.difference.mean,
        100 * fitness.gain,
    )
    room = None
    if BASE_COOLED in panels and CEILING in panels:
        room = statistics.contrast(panels[CEILING][fitness.panel], panels[BASE_COOLED][fitness.panel])
    yield Criterion(
        "ceiling above the cooled base, points",
        None if room is None else 100 * room.difference.mean,
        100 * fitness.headroom,
    )
    error = power[0].standard_error
    yield Criterion(
        f"standard errors in an effect of {100 * fitness.effect:g} points",
        fitness.effect / error if error else None,
        fitness.standard_errors,
    )
