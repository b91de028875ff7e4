"""What sections are built from: bullets, a titled list, figures, and values that changed from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rlanything.report.formatting import NONE, code
from rlanything.report.report_data import ReportData
from rlanything.report.results.curves import RECENT, Curves, Run, ends

MODELS = {"policy": "policy", "reward": "reward model"}
"""Model, as in the names of its metrics -> what it is called."""
FIRST_AND_LAST = f"Mean over seeds of the first {RECENT} and of the last {RECENT} iterations."


def bullets(lines: Sequence[str]) -> str:
    """A list, with an empty line before it; '' for no lines."""
    return "".join(["\n", *(f"- {line}\n" for line in lines)]) if lines else ""


def titled(title: str, lines: Sequence[str]) -> str:
    """A list below a sentence; '' for no lines."""
    return f"\n{title}\n{bullets(lines)}" if lines else ""


def image(caption: str, name: str) -> str:
    """A figure in a paragraph of its own."""
    return f"![{caption}](figures/{name}.png)\n\n"


def images(data: ReportData, section: str) -> str:
    """The declared figures of one section."""
    drawings = [drawing for drawing in data.contents.drawings if drawing.section == section]
    return "".join(image(drawing.caption, drawing.name) for drawing in drawings)


def percent(value: float) -> str:
    """A fraction in percent."""
    return f"{100.0 * value:.1f}"


def signed(value: float) -> str:
    """A vote from -1 to 1; a mean that rounds to 0 has no sign."""
    return f"{round(value, 2) + 0.0:+.2f}"


def from_to(runs: Mapping[int, Run], key: str, text: Callable[[float], str]) -> str:
    """`61.9 → 85.1`: a metric of an arm at the start and at the end of its runs."""
    found = ends(runs, key)
    return NONE if found is None else f"{text(found[0])} → {text(found[1])}"


def model_rows(curves: Curves, metric: str) -> Iterator[tuple[str, str, list[Run]]]:
    """Each arm's models that have `metric`: the row's first cell, the model, and the runs that have it."""
    for arm, runs in curves.items():
        for model, words in MODELS.items():
            if found := [run for run in runs.values() if f"{model}/{metric}" in run]:
                yield f"{code(arm)}, {words}", model, found


def mean_of(runs: Sequence[Run], key: str, style: str) -> str:
    """The mean over iterations, then over the runs that have the metric, in `style`."""
    found = [sum(series.values()) / len(series) for run in runs if (series := run.get(key))]
    return style.format(sum(found) / len(found)) if found else NONE
