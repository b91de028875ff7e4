"""The page of a comparison: results with their tests, settings that differ, curves over each other, tasks, origins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rlanything.compare.comparison import Compared, cells, headline, joint, notes
from rlanything.compare.figures import COMPARISON, page_of
from rlanything.compare.origins import buffers, made_from
from rlanything.compare.tables import difference_table, settings_table, side_table, value_table
from rlanything.report.declared_figures import Drawing
from rlanything.report.drawn.canvas import Chart
from rlanything.report.drawn.curves import curves_chart
from rlanything.report.figures import charts
from rlanything.report.formatting import code
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.learning import learning
from rlanything.report.sections.parts import bullets, image
from rlanything.report.sections.reward_model import reward_model
from rlanything.report.sections.theory import theory


def comparison_page(found: Compared) -> str:
    """The whole page; equal sides give equal text."""
    return page_of(COMPARISON, comparison_md(found), _charts(found))


def comparison_md(found: Compared) -> str:
    """The document, as Markdown."""
    return "\n".join(text for section in SECTIONS if (text := section(found)))


def _head(found: Compared) -> str:
    return f"# {COMPARISON}\n\n**{headline(found)}**\n\n{side_table(found)}{bullets(list(notes(found)))}"


def _result(found: Compared) -> str:
    return (
        "## Result\n\nPercent, final checkpoints, means over seeds and tasks with 95 % intervals; counts: a run's.\n\n"
        f"{value_table(found)}\n"
        "Differences are in points, paired by seed and task. The p-values are two-sided, and corrected by Holm's "
        "method over all differences of this page. Results that are the same to the last answer are no comparison.\n\n"
        f"{difference_table(found)}"
    )


def _limits(found: Compared) -> str:
    return f"## What may not be concluded\n{bullets(list(_not_concluded(found)))}"


def _not_concluded(found: Compared) -> Iterator[str]:
    tested = [row for row in found.differences if row.found is not None]
    unclear = sum(not row.found.clear for row in tested if row.found is not None)
    if unclear:
        yield (
            f"{unclear} of {len(tested)} differences are not clear. An unclear difference is not evidence that both "
            "sides are equal."
        )
    if len(found.settings) > 1:
        yield (
            f"{len(found.settings)} settings differ. A difference of results is that of all of them together, and of "
            "the code and inputs below; none of them alone is shown to cause it."
        )
    if any(len(arm.seeds) == 1 for group in found.groups for arm in group.of if arm is not None):
        yield "Where a side has one seed, its intervals come from the tasks alone: another seed may end elsewhere."
    yield (
        "The sides were chosen by whoever asked, perhaps after the results were seen. The correction does not know of "
        "comparisons that were made elsewhere."
    )
    yield "About other tasks, models and settings than these."


def _settings(found: Compared) -> str:
    known = [side.letter for side in found.sides if side.settings]
    said = settings_table(found) if found.settings else f"None, as far as {' and '.join(known)} say.\n"
    return f"## Settings that differ\n\n{said}"


def _curves(found: Compared) -> str:
    if found.single:
        return learning(joint(found))
    shown = [
        f"### {code(group.arm)}\n\n{image('Learning curves', _name(i))}"
        for i, group in enumerate(found.groups)
        if any(arm is not None and arm.curves for arm in group.of)
    ]
    return f"## Learning curves\n\n{''.join(shown)}" if shown else ""


def _together(found: Compared) -> str:
    """The sections of the report that show several arms, where each side is one."""
    if not found.single or len({side.environment for side in found.sides}) > 1:
        return ""
    data = joint(found)
    return "\n".join(filter(None, (section(data) for section in (reward_model, theory, hacking, cost))))


def _tasks(found: Compared) -> str:
    lines = [line for group in found.groups for line in buffers(found.sides, group, found.root)]
    return (
        f"## Tasks\n\nEach side's last buffer against the other's, of the same seed.\n{bullets(lines)}"
        if lines
        else ""
    )


def _origins(found: Compared) -> str:
    lines = [line for group in found.groups for line in made_from(found.sides, group)]
    check = (
        "Where two folders of runs or projects first differ, byte for byte: "
        f"{code('rlanything first-difference A B')}. What a run was made from: {code('rlanything provenance RUN')}.\n"
    )
    return f"## Provenance\n{bullets(lines)}\n{check}"


SECTIONS: Sequence[Callable[[Compared], str]] = (
    _head, _result, _limits, _settings, _curves, _together, _tasks, _origins,
)  # fmt: skip
"""In the order of the page; one that has nothing to say is left out."""


def _charts(found: Compared) -> Iterator[Chart]:
    if found.single:
        yield from charts(joint(found))
        return
    success = found.contents.drawings[0]
    for i, group in enumerate(found.groups):
        of = [(side.label, arm) for side, arm in zip(found.sides, group.of, strict=True) if arm is not None]
        drawing: Drawing = replace(success, name=_name(i))
        curves = {label: dict(arm.curves) for label, arm in of if arm.curves}
        yield curves_chart(drawing, curves, {label: cells(found, arm) for label, arm in of})


def _name(number: int) -> str:
    """Of a figure of an arm's curves: a name of ours, whatever the arm's is."""
    return f"curves-{number}"
