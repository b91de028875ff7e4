"""The tables of a comparison, as Markdown."""

from __future__ import annotations

from rlanything.compare.comparison import Compared
from rlanything.compare.results import Difference, Group, first, value
from rlanything.compare.side import Side
from rlanything.report.formatting import NONE, code, interval, markdown_table, number, p_text
from rlanything.report.results.metrics import Metric
from rlanything.report.results.paper import ORDER


def side_table(found: Compared) -> str:
    """A line for each side: what its name means, and its settings that say most."""
    rows = [[f"{side.letter} {code(side.name)}", *_about(side)] for side in found.sides]
    return markdown_table(["side", "what it is", "arms", "environment", "iterations"], rows)


def _about(side: Side) -> list[str]:
    iterations = side.settings.get("train.iterations", NONE)
    arms = ", ".join(map(code, side.arms))
    return [code(side.kind), arms, code(side.environment or "not known"), code(iterations)]


def value_table(found: Compared) -> str:
    """A line for each arm and metric, a column for each side, and what the paper has of the arms."""
    rows, columns = [], paper_columns(found)
    for group in found.groups:
        for metric in found.metrics:
            values = [value(arm, metric) for arm in group.of]
            if any(of is not None for of in values):
                theirs = (found.contents.paper.value(arm or group.arm, metric) for arm in columns.values())
                cells = [*(interval(of, metric) for of in values), *(number(of, metric) for of in theirs)]
                rows.append([_title(found, group, metric), *cells])
    first_column = "metric" if found.single else "arm, metric"
    sides = [f"{side.letter} {code(side.name)}" for side in found.sides]
    return markdown_table([first_column, *sides, *columns], rows)


def paper_columns(found: Compared) -> dict[str, str]:
    """Column of the paper -> its arm, '' for that of the line; none where it has no value, or environments differ."""
    if not found.comparable:
        return {}
    paper = found.contents.paper
    names = {arm.name for group in found.groups for arm in group.of if arm is not None}
    known = [name for name in ORDER if name in names]
    if not any(paper.value(name, metric) is not None for name in known for metric in found.metrics):
        return {}
    if all(group.arm for group in found.groups):
        return {"paper": ""}
    return {f"paper: {name}": name for name in known}


def difference_table(found: Compared) -> str:
    """A line for each difference, with its test or why there is none, and the paper's between two of its arms."""
    theirs = [_gain(found, row) if paper_columns(found) else NONE for row in found.differences]
    shown = any(gain != NONE for gain in theirs)
    rows = [
        [_pair(found, row), *_tested(row), *([gain] if shown else [])]
        for row, gain in zip(found.differences, theirs, strict=True)
    ]
    header = ["sides, metric", "difference", "p (Holm)", "clear", "paired on", *(["paper"] if shown else [])]
    return markdown_table(header, rows)


def _gain(found: Compared, row: Difference) -> str:
    """The paper's difference between the arms of two sides; a dash for one arm with itself."""
    lower, upper = row.group.of[first(row.group)], row.group.of[row.side]
    if lower is None or upper is None or lower.name == upper.name:
        return NONE
    return number(found.contents.paper.gain(upper.name, row.metric, lower.name), row.metric, sign=True)


def _pair(found: Compared, row: Difference) -> str:
    sides = f"{found.sides[row.side].letter} − {found.sides[first(row.group)].letter}"
    return f"{sides}, {_title(found, row.group, row.metric)}"


def _tested(row: Difference) -> list[str]:
    if row.found is None:
        return [NONE, NONE, NONE, f"not tested: {row.why}"]
    clear = NONE if row.same else "yes" if row.found.clear else "no"
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
