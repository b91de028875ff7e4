"""The results of an adaptation check as JSON, and as a page of Markdown."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rlanything.checks.adaptation.course import Moment, Trend
from rlanything.checks.adaptation.results import SHARE, Compared, Distance, Found, Lost, Row
from rlanything.core.printable import counted
from rlanything.report.formatting import NONE, code, interval, markdown_table, p_text
from rlanything.report.results.statistics import Estimate

WHO = {"base": "the policy that training begins with", "trained": "the policy that training ended with"}


def to_json(found: Found) -> dict[str, Any]:
    """What adaptation.json holds (format: docs/checks.md). Shares are between 0 and 1."""
    return {
        "declared": found.declared.model_dump(mode="json"),
        "band": asdict(found.band),
        "seeds": list(found.seeds),
        "rewrites": {str(seed): count for seed, count in found.rewrites.items()},
        "rules": [asdict(row) for row in found.rows],
        "compared": [asdict(row) for row in found.compared],
        "first_tasks": [asdict(row) for row in found.lost],
        "distances": [asdict(row) for row in found.distances],
        "course": [asdict(moment) for moment in found.moments],
        "trends": [asdict(trend) for trend in found.trends],
        "keys": {str(seed): key for seed, key in found.keys.items()},
    }


def to_markdown(found: Found, name: str) -> str:
    """The page."""
    declared, band = found.declared, found.band
    parts = [
        f"# Adaptation {code(name)}",
        f"{sum(found.rewrites.values()):,} rewrites of {code(declared.arm)} were rolled out in training, with "
        f"{counted(len(found.seeds), 'seed')}. Both tasks of each, the old and the new one, were played again "
        f"{declared.rollouts} times. Percent and points, with 95 % intervals over seeds.",
        "## Acceptance",
        "Changes of accuracy in the direction asked for. *Recorded* is what training measured, *fresh* what further "
        "rollouts measured. *Right way*: rewrites whose fresh change is above 0. *In the band*: new tasks whose fresh "
        f"accuracy is from {100 * band.alpha_low:g} to {100 * band.alpha_high:g} %.",
        *(_rules(found, probe) for probe in declared.probes),
        *(_compared(found) if found.compared else ()),
        *(_first(found) if declared.against is not None else ()),
        "## Distance",
        "1 - shared words / all words of what opens an episode, and 1 - cosine of the base policy's embeddings of it.",
        markdown_table(
            ["by", "a rewritten slot from its first task", "two first tasks"],
            [_moved(row) for row in found.distances],
        ).rstrip(),
        *(_course(found) if found.moments else ()),
    ]
    return "\n\n".join(parts) + "\n"


def _rules(found: Found, probe: str) -> str:
    header = ["rule", "accepted", "recorded", "fresh", "right way", "in the band"]
    rows = [_rule(row) for row in found.rows if row.probe == probe]
    return f"Played by {WHO[probe]}:\n\n{markdown_table(header, rows).rstrip()}"


def _rule(row: Row) -> list[str]:
    return [
        code(row.rule),
        _count(row.accepted),
        *(interval(change, SHARE, sign=True) for change in (row.recorded, row.fresh)),
        *(interval(share, SHARE) for share in (row.right, row.inside)),
    ]


def _compared(found: Found) -> list[str]:
    return [
        "The share of new tasks in the band that one rule accepts, minus that of another; in points, paired by seed. p "
        "is Holm's over this table.",
        markdown_table(
            ["played by", "rule", "over", "difference", "p"], list(map(_comparison, found.compared))
        ).rstrip(),
    ]


def _comparison(row: Compared) -> list[str]:
    difference = row.difference
    return [
        WHO[row.probe],
        *(code(rule) for rule in (row.rule, row.over)),
        interval(difference.difference if difference else None, SHARE, sign=True),
        p_text(difference.p if difference else None),
    ]


def _count(found: Estimate | None) -> str:
    return NONE if found is None else f"{found.mean:.1f}"


def _first(found: Found) -> list[str]:
    declared = found.declared
    return [
        "## First tasks",
        f"The tasks with which training began, played {declared.first_rollouts} times by the final policies of "
        f"{code(declared.arm)} and of {code(declared.against)}, which rewrites nothing. The interval of *all* is over "
        "seeds and tasks. p is Holm's over the three.",
        markdown_table(
            ["first tasks", code(declared.arm), code(declared.against), "difference", "p"],
            [_lost(row) for row in found.lost],
        ).rstrip(),
    ]


def _lost(row: Lost) -> list[str]:
    difference = row.difference
    return [
        row.part,
        interval(row.arm, SHARE),
        interval(row.against, SHARE),
        interval(difference.difference if difference else None, SHARE, sign=True),
        p_text(difference.p if difference else None),
    ]


def _course(found: Found) -> list[str]:
    declared, panels = found.declared, list(found.moments[0].success)
    header = ["iteration", "slots replaced", "words", "embedding"]
    for panel in panels:
        header += [code(panel), *([f"over {code(declared.against)}"] if declared.against else [])]
    over = f", and *over {code(declared.against)}* the difference" if declared.against else ""
    return [
        "## Over training",
        "The points of the learning curves. *Slots replaced*: those whose task was replaced by then. *Words* and "
        "*embedding*: the distance of a slot's task from its first one, mean over all slots. The columns of the panels "
        f"have the success of {code(declared.arm)}{over}.",
        markdown_table(header, [_moment(row, bool(declared.against)) for row in found.moments]).rstrip(),
        *(_trends(found) if found.trends else ()),
    ]


def _moment(row: Moment, compared: bool) -> list[str]:
    cells = [str(row.iteration), interval(row.replaced, SHARE), _plain(row.words), _plain(row.embedding)]
    for success in row.success.values():
        difference = [interval(success.difference, SHARE, sign=True)] if compared else []
        cells += [interval(success.arm, SHARE), *difference]
    return cells


def _trends(found: Found) -> list[str]:
    return [
        "How far the arms differ for a tenth of the slots, in points: the slope of a line through the start, where "
        "both have the same policy; mean over the seeds that replaced some. A difference that does not grow has a "
        "slope too. p is Holm's over the panels.",
        markdown_table(["panel", "a tenth of the slots", "p"], list(map(_trend, found.trends))).rstrip(),
    ]


def _trend(row: Trend) -> list[str]:
    slope = row.slope
    shown = interval(slope.difference if slope else None, SHARE, sign=True)
    return [code(row.panel), shown, p_text(slope.p if slope else None)]


def _moved(row: Distance) -> list[str]:
    return [row.by, *(_plain(found) for found in (row.moved, row.apart))]


def _plain(found: Estimate | None) -> str:
    if found is None:
        return NONE
    ends = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.mean:.3f}{ends}"
