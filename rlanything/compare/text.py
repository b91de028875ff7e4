"""A comparison in short, for a terminal."""

from __future__ import annotations

from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out
from rlanything.compare.comparison import Compared, headline, notes
from rlanything.compare.results import first, value
from rlanything.core.printable import one_line, safe
from rlanything.report.formatting import NONE, interval, p_text

MOST = 12
"""Settings that are printed; the page has all."""


def short(found: Compared, screen: Screen) -> str:
    """The headline, what cannot be compared, the settings that differ, and the differences with their tests."""
    said = [_plain(note) for note in notes(found)]
    sides = [[side.letter, safe(side.name), safe(side.kind)] for side in found.sides]
    parts = [
        lay_out([heading(_plain(headline(found)))], screen),
        "".join(aligned(("", "side", "what it is"), sides, set(), screen)),
        "".join(f"! {line}\n" for line in said),
        _settings(found, screen),
        _differences(found, screen),
    ]
    return "\n".join(filter(None, parts))


def _plain(line: str) -> str:
    return one_line(line.replace("`", "").replace("\\|", "|"))


def _settings(found: Compared, screen: Screen) -> str:
    rows = [list(map(one_line, (row.key, *row.values))) for row in found.settings[:MOST]]
    if not rows:
        return "no setting differs\n"
    more = len(found.settings) - len(rows)
    table = "".join(aligned(("setting", *(side.letter for side in found.sides)), rows, set(), screen))
    return table + (f"and {more} more (--output has all)\n" if more else "")


def _differences(found: Compared, screen: Screen) -> str:
    rows, shown = [], [row for row in found.differences if not row.same]
    for row in shown:
        pair = f"{found.sides[first(row.group)].letter}, {found.sides[row.side].letter}"
        tested = (
            [NONE, NONE, f"not tested: {row.why}"]
            if row.found is None
            else [
                interval(row.found.difference, row.metric, sign=True),
                p_text(row.found.p),
                str(row.paired_on),
            ]
        )
        arm = [] if found.single else [safe(row.group.arm)]
        both = (row.group.of[i] for i in (first(row.group), row.side))
        values = [interval(value(of, row.metric), row.metric) for of in both]
        rows.append([pair, *arm, row.metric.short, *values, *tested])
    arm = [] if found.single else ["arm"]
    names = ("", *arm, "metric", "first", "second", "difference", "p (Holm)", "paired on")
    table = "".join(aligned(names, rows, set(), screen)) if rows else ""
    same = len(found.differences) - len(shown)
    return table + (f"the same results on both sides: {same} more\n" if same else "")
