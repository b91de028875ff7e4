"""A sweep's report.md: the best trial, how certain its lead is, a table of all trials, and the figures."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from rlanything.core.printable import counted
from rlanything.report.formatting import NONE, code, markdown_table, p_text
from rlanything.report.results.statistics import Estimate
from rlanything.sweep.declare.metrics import format_estimate, sign
from rlanything.sweep.declare.sweep import Sweep, as_default, own_overrides
from rlanything.sweep.results.comparisons import FreshMeans
from rlanything.sweep.results.views import Point, Views
from rlanything.sweep.trials.board import Board

FIGURES = {
    "history": "Trials in their order",
    "front": "One objective against the others",
    "slices": "Each parameter",
    "contour": "Both thresholds",
    "importances": "Which parameter matters",
    "adaptation": "What the tasks did",
    "fresh": "The winner's lead on the seeds that chose it and on fresh ones",
}
LEVEL = 0.05
TO_DEFAULT = "To make the best trial's setting that of the project"
DEFAULT = "default"
"""Label of the trial of the project's own setting."""
ITSELF = "The best trial is the default itself: nothing here asks for another setting."
NO_DEFAULT = "The default has no result: there is nothing to compare with."
NOT_SHOWN = "Its lead does not hold beyond the intervals: this sweep gives no reason to prefer it."
CORRECTED = "Its lead holds after the correction for the number of points; no fresh seeds have confirmed it."
LUCK = "part of its lead was luck, beyond the intervals"
NO_LUCK = "so few seeds do not show whether its lead was luck"
OVER_TASKS = "over seeds and tasks, in percent; differences in points, paired by seed and task"
OVER_SEEDS = (
    "over seeds, in percent; differences in points, paired by seed. They are means of learning curves, and say nothing "
    "of other tasks than those of the curves"
)
ABOUT = (
    "Means over seeds with 95 % intervals {over}; p by Holm over all points that were run, but not where a trial has "
    "the results of the default. Orange diamond: the paper's point; green square: the default. The winner was chosen "
    "by its mean, so its interval does not say how much of its lead is luck."
)
MEANS = "Means on fresh seeds, which had no part in choosing a trial; they are the numbers to quote:"
FRESH = (
    "Fresh seeds say how much of the lead was luck. They play the same panels, so the luck that lies in the choice of "
    "tasks stays."
)


def report_markdown(board: Board, name: str, views: Views, figures: Sequence[str]) -> str:
    """The whole document. `figures`: names of the figures that were drawn."""
    sweep = board.sweep
    parts = [
        f"# Sweep {name}",
        f"Arms {', '.join(map(code, sweep.arms))}, {counted(sweep.seeds, 'seed')} a trial, "
        f"sampler `{sweep.sampler}`, pruner "
        f"`{sweep.pruner.kind}`. Every trial: {' '.join(map(code, sweep.overrides)) or 'the default scale'}. "
        f"Shares: {sweep.measured_by}.",
        about(sweep),
        "## Result",
        *sentences(views),
        *_to_default(board),
        "## Trials",
        markdown_table(*trials(views, code)),
        *(f"## {FIGURES[f]}\n\n![{FIGURES[f]}](figures/{f}.png)" for f in figures),
        *_failed(board),
    ]
    return "\n\n".join(parts) + "\n"


def config_command(board: Board) -> str | None:
    """The command that makes the best trial's setting the project's; None where it is the default already."""
    best, default = board.best(), board.baselines().get(DEFAULT)
    if best is None or (default is not None and board.source(default) == board.source(best.number)):
        return None
    return shlex.join(["rlanything", "config", "write", *as_default(board.sweep, board.sets(best.number))])


def _to_default(board: Board) -> list[str]:
    command = config_command(board)
    return [] if command is None else [f"{TO_DEFAULT}:\n\n```bash\n{command}\n```", *_own(board.sweep)]


def of_the_sweep(sweep: Sweep) -> str:
    """What of the command is the sweep's own, after it on its line; '' where nothing is."""
    return "".join(f" ({said})" for said in _own(sweep))


def _own(sweep: Sweep) -> list[str]:
    own = " ".join(own_overrides(sweep))
    return [f"Of all trials of the sweep: {own}. Leave out what only shortens it."] if own else []


def about(sweep: Sweep) -> str:
    """What the numbers of a sweep are, and what its markers mean."""
    return ABOUT.format(over=OVER_SEEDS if sweep.last_evaluations else OVER_TASKS)


def sentences(views: Views) -> list[str]:
    """What the numbers say about the winner."""
    if views.best is None:
        return ["No trial has a result."]
    best = next(p for p in views.points if p.number == views.best)
    metric = views.metrics[0]
    found = [f"Best mean: trial {best.name}, {views.objectives[0]} {format_estimate(best.found[0], metric)}."]
    if best.difference is not None:
        d = best.difference
        found[0] += f" Above the default by {_signed(d.difference, metric)}, p {p_text(d.p)}."
    if views.fresh_means:
        found.append(f"{MEANS} {'; '.join(_fresh_mean(f, views) for f in views.fresh_means)}.")
    for c in views.fresh:
        found.append(
            f"On fresh seeds its lead over {c.baseline} (trial {c.against}) is {_signed(c.fresh, metric)}; "
            f"on the seeds that chose it {_signed(c.lead, metric)}. The difference is {_signed(c.luck, metric)}: "
            f"{LUCK if _ahead(c.luck, sign(metric)) else NO_LUCK}."
        )
    if len(views.objectives) > 1:
        found.append(f"No other trial is better in everything: {', '.join(map(str, views.front))}.")
    found += [FRESH] if views.fresh else []
    found.append(_worth(views, best))
    return found


def _fresh_mean(found: FreshMeans, views: Views) -> str:
    estimate = found.means.get(views.objectives[0])
    shown = NONE if estimate is None else format_estimate(estimate, views.metrics[0])
    return f"trial {found.trial} ({', '.join(found.names)}) {shown}"


def _worth(views: Views, best: Point) -> str:
    """The conclusion."""
    if best.difference is None and not views.fresh:
        return ITSELF if _is_default(views, best) else NO_DEFAULT
    if views.fresh:
        held = all(_ahead(c.fresh, sign(views.metrics[0])) for c in views.fresh)
        over = " and ".join(f"trial {c.against} ({c.baseline})" for c in views.fresh)
        return f"Its lead over {over} holds on fresh seeds, beyond the intervals." if held else NOT_SHOWN
    p = best.difference.p if best.difference is not None else None
    return CORRECTED if p is not None and p < LEVEL else NOT_SHOWN


def _is_default(views: Views, best: Point) -> bool:
    """Whether the winner is the default's point; not where the default has no result, as when it crashed."""
    return any(p.label == DEFAULT and p.sets == best.sets for p in views.finished)


def _signed(found: Estimate, metric: str) -> str:
    return format_estimate(found, metric, signed=True)


def _ahead(found: Estimate, way: int) -> bool:
    """Whether all of the interval is on the better side of 0."""
    return found.low is not None and found.high is not None and min(way * found.low, way * found.high) > 0


def trials(views: Views, quoted: Callable[[object], str]) -> tuple[list[str], list[list[str]]]:
    """Every trial as a row of cells, and the header. `quoted`: how a value of the configuration is written."""
    keys = views.keys
    header = ["trial", *keys, *views.objectives, "vs default", "p (Holm)", "accepted", "in band", "state"]
    return header, [_row(p, keys, views, quoted) for p in views.points]


def _row(point: Point, keys: Sequence[str], views: Views, quoted: Callable[[object], str]) -> list[str]:
    metrics = views.metrics
    sets = [quoted(point.sets[k]) if k in point.sets else NONE for k in keys]
    found = [format_estimate(e, m) for e, m in zip(point.found, metrics, strict=False)] or [NONE] * len(
        metrics
    )
    d = point.difference
    against = NONE if d is None else _signed(d.difference, metrics[0])
    p = NONE if d is None else p_text(d.p)
    accepted = NONE if point.accepted is None else f"{point.accepted.mean:.1f}"
    band = NONE if point.band_coverage is None else f"{100 * point.band_coverage:.0f} %"
    return [point.name, *sets, *found, against, p, accepted, band, point.state]


def _failed(board: Board) -> list[str]:
    lines = [f"- {who}: {code(error)}" for who, error in crashes(board)]
    return ["## Crashed", "\n".join(lines)] if lines else []


def crashes(board: Board) -> list[tuple[str, str]]:
    """Which trials crashed, also on fresh seeds, and the last line of each one's error."""
    found = [(f"trial {t.number}", t.user_attrs.get("error")) for t in board.study.trials()]
    found += [(f"trial {n} on fresh seeds", board.fresh.error(n)) for n in board.candidates()]
    return [(who, error.strip().rpartition("\n")[2]) for who, error in found if error]
