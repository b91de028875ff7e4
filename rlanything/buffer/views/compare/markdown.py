"""`diff A B` as Markdown for a pull request. Task text is escaped: it formats nothing, names nobody and no issue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rlanything.buffer.views.compare.field_lines import field_line, field_lines, shortened
from rlanything.buffer.views.compare.text import (
    causes_line,
    concentrated,
    counts_line,
    histogram,
    inside_line,
    notes,
    nowhere,
    title,
)
from rlanything.buffer.views.compare.three_way import agreement_line, pairs_line, verdicts_line
from rlanything.buffer.views.compare.two_way import listed
from rlanything.buffer.views.terminal import share
from rlanything.core.printable import one_line

_SPECIAL = re.compile(
    r"(?P<iteration>(?<=[A-Za-z0-9])@(?=\d+(?![\w.-])))"
    r"|(?P<host>[@#$]|[!&](?=\d)|[%~](?=[\w\"])|\bGH-(?=\d)|:(?=//)|\bwww(?=\.))"
    r"|[\\`*_\[\]<|~&]",
    re.IGNORECASE,
)
"""iteration: the @ in the name of a buffer. host: what hosts give a meaning, which see names of accounts, labels and
milestones, numbers of issues and requests, formulas, and addresses of pages. The rest: what Markdown gives one."""
_NOTHING = "&#8203;"
"""A character that is not seen. Hosts look for accounts and issues in what is shown, after Markdown, so no way to write
@ or # keeps them from that; a character behind it does."""
_SLOTS = 50
"""Slots that are listed; more are hard to read in a pull request."""
_FIELDS = 6
_DETAILS = 6
"""Lines, items or pairs of one field that are listed."""
_LISTED = 8


def diff_markdown(page: dict[str, Any]) -> str:
    """The comparison as one Markdown section."""
    lines = [
        f"### Task buffer: {escaped(title(page))}",
        "",
        f"**{escaped(counts_line(page))}**",
        "",
    ]
    if causes := causes_line(page):
        lines += [escaped(causes), ""]
    band = f"Inside the band {escaped(inside_line(page['difficulty']['inside']))}"
    lines += ["; ".join([band, *notes(page["difficulty"])]), ""]
    lines += [*_histogram(page["difficulty"]), "", *_concentration(page), *_slots(listed(page))]
    return "\n".join(lines).rstrip() + "\n"


def three_markdown(page: Mapping[str, Any]) -> str:
    """A comparison of three as one Markdown section."""
    names = [escaped(f"{page['base']} -> {side} {page[side.lower()]}") for side in ("A", "B")]
    lines = [
        f"### Task buffers: {names[0]}, {names[1]}",
        "",
        f"**{escaped(verdicts_line(page['counts']))}**",
        "",
    ]
    lines += [escaped(agreement_line(page["agreement"])), ""]
    rows = page["slots"]
    if rows:
        lines += ["| slot | | base | A | acc | B | acc |", "|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(_three_cells(row)) + " |" for row in rows[:_SLOTS]]
    lines += ["", f"{len(rows) - _SLOTS} more slots are not listed here."] if len(rows) > _SLOTS else []
    return "\n".join(lines).rstrip() + "\n"


def _three_cells(row: Mapping[str, Any]) -> list[str]:
    cells = [str(row["slot"]), row["verdict"], escaped(row["base"] or "-")]
    for side in (row["a"], row["b"]):
        task = "" if side["status"] == "unchanged" else f": {side['instruction'] or '-'}"
        pairs = pairs_line(side["fields"])
        became = escaped(f"{side['status']}{task}{f' ({pairs})' if pairs else ''}")
        why = f"<br>{escaped(side['reason'])}" if side["reason"] else ""
        cells += [f"{became}{why}", share(side["accuracy"])]
    return cells


def escaped(text: str) -> str:
    """Text on one line that Markdown shows as it is.

    In it @ names no account, # and GH- no issue, ! no request, $ begins no formula, and an address becomes no link.
    """
    return _SPECIAL.sub(_escape, one_line(text))


def _escape(found: re.Match[str]) -> str:
    sign = found[0]
    written = sign if sign.isalnum() or len(sign) > 1 else f"&#{ord(sign)};"
    if found["host"]:
        return f"{written}{_NOTHING}"
    return written if found["iteration"] else f"\\{sign}"


def _histogram(difficulty: Mapping[str, Any]) -> Iterator[str]:
    bars = histogram(difficulty)
    yield "| accuracy | " + " | ".join([*(bar["label"] for bar in bars), "not measured"]) + " |"
    yield "|---" * (len(bars) + 2) + "|"
    for side in ("old", "new"):
        values = [*(bar[side] for bar in bars), difficulty["unmeasured"][side]]
        yield f"| {side} | " + " | ".join(map(str, values)) + " |"


def _concentration(page: Mapping[str, Any]) -> Iterator[str]:
    found = concentrated(page)
    shown = found if page["by"] else found[:_LISTED]
    yield "Where the change concentrates" + (":" if shown else f": {nowhere(page)}")
    yield ""
    if shown:
        yield "| field | value | changed | ratio | p |"
        yield "|---|---|---|---|---|"
    for row in shown:
        what = f"{escaped(row['field'])} | {escaped(row['value'])}"
        yield f"| {what} | {row['changed']} of {row['tasks']} | {row['ratio']:.2f} | {row['p']:.2g} |"
    if shown:
        yield ""


def _slots(rows: list[dict[str, Any]]) -> Iterator[str]:
    if not rows:
        return
    yield "| slot | versions | direction | accuracy | task | why |"
    yield "|---|---|---|---|---|---|"
    for row in rows[:_SLOTS]:
        yield "| " + " | ".join(_cells(row)) + " |"
    if len(rows) > _SLOTS:
        yield f"\n{len(rows) - _SLOTS} more slots are not listed here."


def _cells(row: Mapping[str, Any]) -> list[str]:
    accuracy = f"{share(row['accuracy']['old'])} → {share(row['accuracy']['new'])}"
    fields = [line for field in row["fields"][:_FIELDS] for line in _field(field)]
    more = [f"{len(row['fields']) - _FIELDS} fields more"] if len(row["fields"]) > _FIELDS else []
    task = "<br>".join([_sentence(row["instruction"]), *fields, *more])
    ways = ", ".join(row["directions"]) or row["status"]
    return [str(row["slot"]), escaped(row["path"]), ways, accuracy, task, escaped(row["reason"])]


def _field(field: Mapping[str, Any]) -> Iterator[str]:
    yield escaped(field_line(field))
    lines = field_lines(field)
    yield from (f"&nbsp;&nbsp;{escaped(line.text)}" for line in lines[:_DETAILS])
    if len(lines) > _DETAILS:
        yield f"&nbsp;&nbsp;{len(lines) - _DETAILS} lines more"


def _sentence(parts: list[tuple[str, str]]) -> str:
    return "".join(_part(kind, text) for kind, text in shortened(parts)).strip()


def _part(kind: str, text: str) -> str:
    # Emphasis must touch its words: blanks go outside.
    inner = escaped(text)
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() else ""
    if kind == "same" or not inner:
        return before + inner + after if inner else " "
    mark = "~~" if kind == "old" else "**"
    return f"{before}{mark}{inner}{mark}{after}"
