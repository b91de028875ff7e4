"""The sides of a comparison as the arms of one report, so that its sections and figures show them together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlanything.compare.comparison import Compared
from rlanything.compare.results import Group, value
from rlanything.compare.side import Arm, Side
from rlanything.config.algorithm import ArmConfig
from rlanything.report.report_data import ReportData
from rlanything.report.results.comparison import Cell, Comparison
from rlanything.report.results.curves import peaks
from rlanything.report.results.details import Extras
from rlanything.report.results.equal_tokens import at_equal_tokens
from rlanything.report.results.votes import read_votes


@dataclass(frozen=True)
class _Row:
    """An arm of a side. alone: whether the label need not say which arm it is."""

    side: Side
    arm: Arm
    alone: bool

    @property
    def label(self) -> str:
        """`A outcome`; where sides have several arms, `full, A`: the sides of an arm stand beside each other."""
        return self.side.label if self.alone else f"{self.arm.name}, {self.side.letter}"

    def declared(self) -> ArmConfig | None:
        """The switches of the arm, with the name that the arm of its reward model has here."""
        config = self.side.config
        found = None if config is None else config.arms.get(self.arm.name)
        if found is None or found.reward_from is None or self.alone:
            return found
        return found.model_copy(update={"reward_from": f"{found.reward_from}, {self.side.letter}"})


def with_votes(found: Compared) -> Compared:
    """The same with the stored votes of whole experiments, which only a page shows. Raises `ReportError`."""
    if not found.contents.acts:
        return found
    pairs = [(group, zip(found.sides, group.of, strict=True)) for group in found.groups]
    groups = [replace(group, of=tuple(_voted(side, arm) for side, arm in of)) for group, of in pairs]
    return replace(found, groups=groups)


def _voted(side: Side, arm: Arm | None) -> Arm | None:
    if arm is None or arm.votes or side.place is None:
        return arm
    stored = {
        seed: arm.curves[seed] for seed in arm.folders
    }  # not of an arm whose name is a path: it has none
    return replace(arm, votes=read_votes(side.place, {arm.name: stored}).get(arm.name, {}))


def joint(found: Compared) -> ReportData:
    """Every arm that is compared, of every side."""
    return _data(found, [row for group in found.groups for row in _rows(found, group, found.single)])


def of_group(found: Compared, group: Group) -> ReportData:
    """One arm of every side, with the names of the sides."""
    return _data(found, _rows(found, group, alone=True))


def _rows(found: Compared, group: Group, alone: bool) -> list[_Row]:
    pairs = zip(found.sides, group.of, strict=True)
    return [_Row(side, arm, alone) for side, arm in pairs if arm is not None]


def _data(found: Compared, rows: list[_Row]) -> ReportData:
    panels = {row.label: dict(row.arm.panels) for row in rows if row.arm.panels}
    curves = {row.label: dict(row.arm.curves) for row in rows if row.arm.curves}
    arms = {row.label: arm for row in rows if (arm := row.declared()) is not None}
    success = [metric for metric in found.contents.shares if metric.is_success]
    return ReportData(
        config=found.config.model_copy(update={"arms": arms}),
        contents=found.contents,
        comparison=Comparison(panels, found.metrics),
        cells={row.label: cells(found, row.arm) for row in rows},
        curves=curves,
        peaks=peaks(curves, found.contents.shares),
        equal_tokens=at_equal_tokens(curves, success),
        extras=Extras({row.label: row.arm.within for row in rows if row.arm.within}, {}, {}, {}),
        cooled=None,
        votes={row.label: row.arm.votes for row in rows if row.arm.votes},
        changed=(),
    )


def cells(found: Compared, arm: Arm) -> dict[str, Cell]:
    """Name of a metric -> the mean of an arm, without a difference: it stands in another table."""
    values = {metric.name: value(arm, metric) for metric in found.metrics}
    return {name: Cell(of, None) for name, of in values.items() if of is not None}
