"""Everything that one report is made from: what was read, and every number that was computed from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.config import BASE, BASE_COOLED, Config
from rlanything.report.buffers import changed_runs
from rlanything.report.contents import Contents, contents_for
from rlanything.report.results.comparison import Cells, Comparison
from rlanything.report.results.curves import Curves, Peaks, peaks, read_curves
from rlanything.report.results.details import Extras, read_extras
from rlanything.report.results.equal_tokens import EqualTokens, at_equal_tokens
from rlanything.report.results.evaluations import Cooled, Panels, read_cooled, read_evaluations
from rlanything.report.results.votes import Votes, read_votes


@dataclass(frozen=True)
class ReportData:
    """The input of every page, table and figure."""

    config: Config
    contents: Contents
    comparison: Comparison
    cells: Cells
    curves: Curves
    peaks: Peaks
    equal_tokens: EqualTokens | None
    extras: Extras
    cooled: Cooled | None
    """The cooled base; None where there is none."""
    votes: Votes
    """Of the first and the last iterations; empty where steps are not voted on."""
    changed: Sequence[str]
    """The runs whose first and last buffer are compared."""


def gather(config: Config, root: Path) -> ReportData:
    """Read the project at `root` and compute every number; writes nothing. Raises `ReportError` for a bad file."""
    cooled = () if config.evaluate.cooling is None else (BASE_COOLED,)
    return gathered(config, root, read_evaluations(root, (*cooled, *config.arms)))


def gathered(config: Config, root: Path, panels: Panels) -> ReportData:
    """The same with panels that were read before; they may lack the base. Raises `ReportError` for a bad file."""
    contents = contents_for(config, panels)
    curves = read_curves(root, config.arms)
    comparison = Comparison(panels, contents.metrics)
    success = [metric for metric in contents.shares if metric.is_success]
    return ReportData(
        config,
        contents,
        comparison,
        comparison.cells(),
        curves,
        peaks(curves, contents.shares),
        at_equal_tokens(curves, success),
        read_extras(root, [arm for arm in panels if arm != BASE]),
        read_cooled(root) if BASE_COOLED in panels else None,
        read_votes(root, curves) if contents.acts else {},
        changed_runs(config, curves, root),
    )
