"""`diff A B` as text for a terminal, and the lines that all renderings share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rlanything.buffer.views.causes import Cause, spelled_cause
from rlanything.buffer.views.compare.field_lines import field_line, field_lines, marked, shortened
from rlanything.buffer.views.compare.two_way import ENDS, listed
from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain, share
from rlanything.core.adaptation import AcceptanceRule
from rlanything.core.printable import one_line, safe

_BAR = 30
"""Characters of the longest bar."""
_LISTED = 8
"""Values that the concentration shows, most concentrated first. `--by` shows all of a field."""
_FIELDS = 10
"""Changed fields of a slot that are shown; `--json` has all."""
_DETAILS = 12
"""Lines, items or pairs of one field that are shown."""
_NOTABLE = 0.2
"""Values with a larger p are not shown, in any rendering, but where one field is asked for."""
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_STYLES = {"old": "red strike", "new": "green"}
_LINES = {"-": "red", "+": "green"}


def diff_text(page: dict[str, Any], screen: Screen) -> str:
    """The whole comparison: counts, difficulty, concentration, then slot by slot."""
    causes = [plain(line)] if (line := causes_line(page)) else []
    head = lay_out([heading(title(page)), plain(counts_line(page)), *causes], screen)
    parts = [head, _difficulty(page, screen), _concentration(page, screen)]
    parts += [lay_out([Text(""), *_slot(row)], screen) for row in listed(page)]
    return "".join(parts)


def title(page: Mapping[str, Any]) -> str:
    """The names of the two buffers."""
    return f"{page['a']['name']} -> {page['b']['name']}"


def counts_line(page: Mapping[str, Any]) -> str:
    """The comparison in one line; the parts after `slots:` add up. Tries of files are there only if there are any."""
    counts = page["counts"]
    parts = [f"{counts['unchanged']} unchanged", f"{counts['harder']} harder", f"{counts['easier']} easier"]
    parts += [f"{counts[key]} {key.replace('_', ' ')}" for key in ("both_ways", "replaced") if counts[key]]
    parts += [f"{counts['added']} added", f"{counts['removed']} removed"]
    noun = "slot" if counts["slots"] == 1 else "slots"
    once = f"{counts['more_than_once']} more than once"
    return f"{counts['slots']} {noun}: {', '.join(parts)}; {'; '.join([once, *_tries(page)])}"


def _tries(page: Mapping[str, Any]) -> list[str]:
    """What became of the tries; of two runs, of the tries of each."""
    tries, sides = page["counts"]["tries"], _sides(page)
    if tries and not any(
        side[end] for side in sides.values() for end in ENDS
    ):  # of a file, or of an imported buffer
        return [f"{tries} new {'try' if tries == 1 else 'tries'} that became no task"]
    said = [f"{label}{', '.join(f'{side[end]} {end}' for end in ENDS)}" for label, side in sides.items()]
    return [f"tries: {'; '.join(said)}"] if said else []


def causes_line(page: Mapping[str, Any]) -> str:
    """`rejected: 3 unsolved, 1 past 0.80`, of each side that rejected something; '' where none did."""
    said = []
    for label, side in _sides(page).items():
        band = page["a" if label == "A " else "b"]["band"]
        rule = AcceptanceRule(band["low"], band["high"])
        found = [
            f"{side['causes'][one.value]} {spelled_cause(one, rule)}"
            for one in Cause
            if one.value in side["causes"]
        ]
        if other := side["rejected"] - sum(side["causes"].values()):
            found.append(f"{other} for another reason")
        said += [f"{label}{', '.join(found)}"] if found else []
    return f"rejected: {'; '.join(said)}" if said else ""


def _sides(page: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The ends of the tries by the label of their side; without a label where one side alone can have tried."""
    a, b = page["tries"]["a"], page["tries"]["b"]
    if b is None:
        return {}
    return {"": b} if a is None else {"A ": a, "B ": b}


def _difficulty(page: Mapping[str, Any], screen: Screen) -> str:
    difficulty = page["difficulty"]
    inside = difficulty["inside"]
    lines = [Text(""), heading(f"difficulty: inside the band {inside_line(inside)}")]
    most = max([1, *difficulty["old"], *difficulty["new"]])
    width = len(str(most))
    lines += [_bars(bar, most, width) for bar in histogram(difficulty)]
    missing = difficulty["unmeasured"]
    if missing["old"] or missing["new"]:
        lines.append(plain(f"  not measured: {missing['old']} -> {missing['new']}"))
    lines += [plain(f"  {note}") for note in notes(difficulty)]
    return lay_out(lines, screen)


def inside_line(inside: Mapping[str, Any]) -> str:
    """`[0.20, 0.80]: 3 of 8 (38%) -> 5 of 8 (62%)`; both bands if they differ; `?` for a share that is not known."""
    old, new = inside["old"], inside["new"]
    sides = [
        "?" if side["slots"] is None else f"{side['slots']} of {side['of']} ({_percent(side['share'])})"
        for side in (old, new)
    ]
    bands = [f"[{side['low']:.2f}, {side['high']:.2f}]" for side in (old, new)]
    if bands[0] == bands[1]:
        return f"{bands[0]}: {sides[0]} -> {sides[1]}"
    return f"{bands[0]}: {sides[0]} -> {bands[1]}: {sides[1]}"


def notes(difficulty: Mapping[str, Any]) -> list[str]:
    """How many old tasks have an accuracy that was measured after A, and why a share is not known; each if it is so."""
    count, inside = difficulty["measured_later"], difficulty["inside"]
    later = [f"{count} of the old tasks were first measured after A"] if count else []
    unknown = [name for name, side in (("A", "old"), ("B", "new")) if inside[side]["slots"] is None]
    if not unknown:
        return later
    of = f" of {unknown[0]}" if len(unknown) == 1 else ""
    return [*later, f"no rollouts{of} kept: accuracies only of tasks that were to be rewritten"]


def histogram(difficulty: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The bars that are not empty in both buffers: `from`, `to`, `label`, and the slots `old` and `new`."""
    edges, sides = difficulty["edges"], (difficulty["old"], difficulty["new"])
    bars = zip(edges, edges[1:], *sides, strict=False)
    return [
        {"from": low, "to": high, "label": f"{low:.1f} to {high:.1f}", "old": old, "new": new}
        for low, high, old, new in bars
        if old or new
    ]


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{value:.0%}"


def _bars(bar: Mapping[str, Any], most: int, width: int) -> Text:
    old, new = bar["old"], bar["new"]
    label = f"  {bar['from']:.1f}-{bar['to']:.1f}  {old:>{width}} -> {new:>{width}}  "
    kept, gone, come = _bar(min(old, new), most), _bar(old, most), _bar(new, most)
    line = Text(label + "█" * kept)
    line.append("░" * (gone - kept), style="red")
    line.append("+" * (come - kept), style="green")
    return line


def _bar(count: int, most: int) -> int:
    return -(-count * _BAR // most)


def _concentration(page: Mapping[str, Any], screen: Screen) -> str:
    shown = concentrated(page)
    shown = shown if page["by"] else shown[:_LISTED]
    counts = page["counts"]
    where = f" by {page['by']}" if page["by"] else ""
    share = f"{counts['slots'] - counts['unchanged']} of {counts['slots']} slots changed"
    top = lay_out([Text(""), heading(f"where the change concentrates{where}: {share}")], screen)
    if not shown:
        return top + lay_out([plain(f"  {nowhere(page)}")], screen)
    cells = [
        [
            f"  {one_line(row['field'])}",
            one_line(row["value"]),
            f"{row['changed']} of {row['tasks']}",
            *_odds(row),
        ]
        for row in shown
    ]
    return top + "".join(aligned(("  field", "value", "changed", "ratio", "p"), cells, {2, 3, 4}, screen))


def _odds(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"x{row['ratio']:.2f}", f"{row['p']:.2g}"


def concentrated(page: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The values in which change concentrates by more than chance explains; of one field that is asked for, all."""
    rows: Sequence[Mapping[str, Any]] = page["concentration"]
    return rows if page["by"] else [row for row in rows if row["ratio"] > 1 and row["p"] <= _NOTABLE]


def nowhere(page: Mapping[str, Any]) -> str:
    """Why `concentrated` has no value."""
    rows = page["concentration"]
    if page["counts"]["unchanged"] == page["counts"]["slots"]:
        return "nothing changed"
    if not rows:
        return "no field sorts these tasks into kinds, or all of them changed"
    return f"in no value of {len({row['field'] for row in rows})} fields more than chance explains"


def _slot(row: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield heading(slot_title(row))
    yield _sentence(row)
    fields = row["fields"]
    for field in fields[:_FIELDS]:
        yield from _field(field)
    if len(fields) > _FIELDS:
        yield plain(f"    ... {len(fields) - _FIELDS} fields more")
    if row["reason"]:
        yield plain(f"    {one_line(row['reason'])}")


def _field(field: Mapping[str, Any]) -> Iterator[Text]:
    yield plain(f"    {field_line(field)}")
    lines = field_lines(field)
    for line in lines[:_DETAILS]:
        yield Text(f"      {line.text}", style=_LINES.get(line.mark, ""))
    if len(lines) > _DETAILS:
        yield plain(f"      ... {len(lines) - _DETAILS} lines more")


def slot_title(row: Mapping[str, Any]) -> str:
    """`slot 4  v0 -> v1  harder  accuracy 1.000 -> 0.750`."""
    ways = ", ".join(row["directions"]) or row["status"]
    accuracy = f"accuracy {share(row['accuracy']['old'])} -> {share(row['accuracy']['new'])}"
    return f"slot {row['slot']}  {row['path']}  {ways}  {accuracy}"


def _sentence(row: Mapping[str, Any]) -> Text:
    """The instruction with its changes marked as git marks words: [-old-]{+new+}."""
    line = Text("    ")
    for kind, text in shortened(row["instruction"]):
        line.append(marked(kind, _on_one_line(kind, text)), style=_STYLES.get(kind))
    return line


def _on_one_line(kind: str, text: str) -> str:
    """A blank for each line break. A change of blanks that has one shows it, or nothing could be seen of it."""
    return safe(text if kind != "same" and text.isspace() else _BREAK.sub(" ", text))
