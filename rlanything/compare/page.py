"""The page of a comparison: results with their tests, settings that differ, curves over each other, tasks, origins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rlanything.compare.comparison import Compared, headline, notes
from rlanything.compare.figures import COMPARISON, FIGURE, folder_of, page_of
from rlanything.compare.joint import joint, of_group, with_votes
from rlanything.compare.origins import buffers, made_from
from rlanything.compare.results import Group
from rlanything.compare.run.parts import beside
from rlanything.compare.tables import difference_table, paper_columns, settings_table, side_table, value_table
from rlanything.report.drawn.canvas import Chart
from rlanything.report.figures import charts
from rlanything.report.formatting import code, plain
from rlanything.report.sections.cost import cost
from rlanything.report.sections.hacking import hacking
from rlanything.report.sections.learning import learning
from rlanything.report.sections.parts import bullets, image
from rlanything.report.sections.reward_model import reward_model
from rlanything.report.sections.theory import theory

LEARNING = "learning"
"""Name of the figure of success while training."""


def comparison_page(found: Compared) -> str:
    """The whole page; equal sides give equal text. Raises `ReportError` for stored votes that cannot be read."""
    voted = with_votes(found)
    return page_of(COMPARISON, comparison_md(voted), _charts(voted))


def comparison_files(found: Compared) -> dict[str, bytes]:
    """The page and its figures as files of a folder. Raises as `comparison_page` does."""
    voted = with_votes(found)
    return folder_of(COMPARISON, comparison_md(voted), _charts(voted))


def comparison_md(found: Compared) -> str:
    """The document, as Markdown. Raises as `comparison_page` does."""
    voted = with_votes(found)
    return "\n".join(text for section in SECTIONS if (text := section(voted)))


def _head(found: Compared) -> str:
    return f"# {COMPARISON}\n\n**{headline(found)}**\n\n{side_table(found)}{bullets(list(notes(found)))}"


def _result(found: Compared) -> str:
    return (
        "## Result\n\nPercent, final checkpoints, means over seeds and tasks with 95 % intervals; counts: a run's.\n\n"
        f"{value_table(found)}\n"
        "Differences are in points, paired by seed and task. The p-values are two-sided, and corrected by Holm's "
        "method over all differences of this page. Results that are the same to the last answer are no comparison.\n\n"
        f"{difference_table(found)}{beside(found.contents.paper) if paper_columns(found) else ''}"
    )


def _limits(found: Compared) -> str:
    return f"## What may not be concluded\n{bullets(list(_not_concluded(found)))}"


def _not_concluded(found: Compared) -> Iterator[str]:
    tested = [row.found for row in found.differences if row.found is not None and not row.same]
    unclear = sum(not contrast.clear for contrast in tested)
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
    curves = any(_has_curves(group) for group in found.groups)
    return (
        f"## Learning curves\n\n{_of_each_arm(found, image('Learning curves', LEARNING))}" if curves else ""
    )


def _together(found: Compared) -> str:
    """The sections of the report that show several arms, where the sides have the same environment."""
    if not found.comparable:
        return ""
    data = joint(found)
    text = "\n".join(filter(None, (section(data) for section in (reward_model, theory, hacking, cost))))
    return text if found.single else _of_each_arm(found, text)


def _of_each_arm(found: Compared, text: str) -> str:
    """The text with a figure of every arm in place of each figure: all arms of all sides are too many lines for one."""

    def figures(one: re.Match[str]) -> str:
        return "".join(
            image(f"{one[1]}: {_words(group.arm)}", _numbered(one[2], i))
            for i, group in enumerate(found.groups)
            if _has_curves(group)
        )

    return FIGURE.sub(figures, text)


def _words(name: str) -> str:
    """An arm's name, which may be anybody's, as words that a caption can have."""
    return re.sub(r"[^\w.-]+", " ", plain(name, 60)).strip()


def _has_curves(group: Group) -> bool:
    return any(arm is not None and arm.curves for arm in group.of)


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
    """The charts of all sides together, or of each arm; of an arm those with numbers."""
    if found.single:
        yield from charts(joint(found))
        return
    for i, group in enumerate(found.groups):
        if _has_curves(group):
            for chart in charts(of_group(found, group)):
                if chart.rows:
                    yield replace(chart, name=_numbered(chart.name, i))


def _numbered(name: str, number: int) -> str:
    """Of a figure of one arm: a name of ours, whatever the arm's is."""
    return f"{name}-{number}"
