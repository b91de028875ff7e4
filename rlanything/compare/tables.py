"""The tables of a comparison, as Markdown."""

from __future__ import annotations

from rlanything.compare.comparison import Compared
from rlanything.compare.results import Difference, Group, first, value
from rlanything.compare.side import Side
from rlanything.report.formatting import NONE, code, interval, markdown_table, p_text
from rlanything.report.results.metrics import Metric


def side_table(found: Compared) -> str:
    """A line for each side: what its name means, and its settings that say most."""
    rows = [[f"{side.letter} {code(side.name)}", *_about(side)] for side in found.sides]
    return markdown_table(["side", "what it is", "arms", "environment", "iterations"], rows)


def _about(side: Side) -> list[str]:
    iterations = side.settings.get("train.iterations", NONE)
    arms = ", ".join(map(code, side.arms))
    return [code(side.kind), arms, code(side.environment or "not known"), code(iterations)]


def value_table(found: Compared) -> str:
    """A line for each arm and metric, a column for each side."""
    rows = []
    for group in found.groups:
        for metric in found.metrics:
            values = [value(arm, metric) for arm in group.of]
            if any(of is not None for of in values):
                rows.append([_title(found, group, metric), *(interval(of, metric) for of in values)])
    first_column = "metric" if found.single else "arm, metric"
    return markdown_table([first_column, *(f"{side.letter} {code(side.name)}" for side in found.sides)], rows)


def difference_table(found: Compared) -> str:
    """A line for each difference, with its test or why there is none."""
    rows = [[_pair(found, row), *_tested(row)] for row in found.differences]
    return markdown_table(["sides, metric", "difference", "p (Holm)", "clear", "paired on"], rows)


def _pair(found: Compared, row: Difference) -> str:
    sides = f"{found.sides[row.side].letter} − {found.sides[first(row.group)].letter}"
    return f"{sides}, {_title(found, row.group, row.metric)}"


def _tested(row: Difference) -> list[str]:
    if row.found is None:
        return [NONE, NONE, NONE, f"not tested: {row.why}"]
    clear = "yes" if row.found.clear else "no"
    return [
        interval(row.found.difference, row.metric, sign=True),
        p_text(row.found.p),
        clear,
        str(row.paired_on),
    ]


def _title(found: Compared, group: Group, metric: Metric) -> str:
    title = found.contents.title(metric)
    return title if found.single else f"{code(group.arm)}, {title}"


def settings_table(found: Compared) -> str:
    """A line for each setting that differs, a column for each side."""
    rows = [[code(row.key), *map(code, row.values)] for row in found.settings]
    return markdown_table(["setting", *(f"{side.letter} {code(side.name)}" for side in found.sides)], rows)
