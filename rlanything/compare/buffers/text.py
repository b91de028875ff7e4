"""`buffer diff ARM ARM` as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain
from rlanything.report.formatting import NONE, p_text

_NAMES = {
    "harder": ("slots made harder", 1),
    "easier": ("slots made easier", 1),
    "accepted": ("accepted, % of those tried", 100),
    "in_band": ("in its band, % at the end", 100),
}
"""Metric -> its name, and what its difference is multiplied by."""


def arms_text(page: Mapping[str, Any], screen: Screen) -> str:
    """A row for each seed, the mean differences, and how often two runs agree."""
    heads = (
        "",
        *(f"{side} {what}" for what in ("harder", "easier", "accepted", "in band") for side in "AB"),
        "kappa",
    )
    rows = [[row["seed"], *_cells(row), _kappa(row["kappa"])] for row in page["seeds"]]
    top = lay_out([heading(f"A {page['a']}"), heading(f"B {page['b']}")], screen)
    table = "".join(aligned(heads, rows, set(range(1, len(heads))), screen))
    cells = [
        [name, *_difference(page["differences"].get(metric), unit)] for metric, (name, unit) in _NAMES.items()
    ]
    differences = "".join(
        aligned(("B - A, mean over seeds", "", "95 % interval", "p"), cells, {1, 3}, screen)
    )
    return f"{top}\n{table}\n{differences}\n{lay_out(list(_agreement(page)), screen)}"


def _cells(row: Mapping[str, Any]) -> Iterator[str]:
    sides = row["a"], row["b"]
    yield from (str(side["harder"]) for side in sides)
    yield from (str(side["easier"]) for side in sides)
    yield from (f"{side['accepted']} of {side['tried']}" for side in sides)
    yield from ("?" if side["in_band"] is None else f"{side['in_band']:.0%}" for side in sides)


def _difference(found: Mapping[str, Any] | None, unit: float) -> tuple[str, str, str]:
    """The mean difference, its interval and p; a dash for what is not known."""
    if found is None:
        return NONE, NONE, NONE
    ends = [found[end] for end in ("low", "high") if found[end] is not None]
    interval = f"[{', '.join(f'{unit * end:+.1f}' for end in ends)}]" if ends else NONE
    return f"{unit * found['mean']:+.1f}", interval, p_text(found["p"])


def _agreement(page: Mapping[str, Any]) -> Iterator[Any]:
    if not page["one_start"]:
        yield plain("kappa: not computed, as the runs do not all begin with the same tasks")
        return
    lines = {
        "kappa of A and B, one seed": page["kappa"]["between"],
        "kappa of two seeds of A": page["kappa"]["seeds_a"],
        "kappa of two seeds of B": page["kappa"]["seeds_b"],
    }
    width = max(map(len, lines))
    for name, values in lines.items():
        yield plain(f"{name:<{width}}  {_several(values)}")


def _several(values: Sequence[float | None]) -> str:
    """The mean, and all of them."""
    known = [value for value in values if value is not None]
    if not known:
        return NONE
    return f"mean {mean(known):.2f} of {len(known)}: {', '.join(map(_kappa, known))}"


def _kappa(value: float | None) -> str:
    return NONE if value is None else f"{value:.2f}"
