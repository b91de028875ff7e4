"""`diff A B` and `diff BASE A B` as a page whose slots can be filtered and sorted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rlanything.buffer.views.compare.field_lines import field_line, field_lines
from rlanything.buffer.views.compare.html_page import document, plain_cell, share_cell, slot_row, task_cell
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
from rlanything.buffer.views.compare.three_way import agreement_line, shared_line, verdicts_line
from rlanything.buffer.views.compare.two_way import SCHEMA
from rlanything.buffer.views.tasks.word_diff import word_diff
from rlanything.pages.frame import Section

_LISTED = 12
"""Values that the concentration shows."""
_SECTIONS = (
    Section("difficulty", "Difficulty"),
    Section("concentration", "Where the change concentrates"),
)
_TWO = (("slot", "n"), ("versions", ""), ("change", ""), ("old", "n"), ("new", "n"), ("task", "task"))
_THREE = (
    *(("slot", "n"), ("verdict", "")),
    *(
        (name, cls)
        for side in "AB"
        for name, cls in ((side, ""), (f"{side} acc", "n"), (f"{side} task", "task"))
    ),
)


def diff_html(page: Mapping[str, Any]) -> str:
    """The page of a comparison of two."""
    difficulty = page["difficulty"]
    values = {
        "title": title(page),
        "summary": [line for line in (counts_line(page), causes_line(page)) if line],
        "inside": inside_line(difficulty["inside"]),
        "difficulty": difficulty,
        "notes": notes(difficulty),
        "bars": histogram(difficulty),
        "most": max([1, *difficulty["old"], *difficulty["new"]]),
        "concentration": concentrated(page)[:_LISTED],
        "nowhere": nowhere(page),
        "foot": f"rlanything buffer diff, schema {SCHEMA}",
    }
    return document("diff.html.jinja", _TWO, [_row(row) for row in page["slots"] or []], values, _SECTIONS)


def three_html(page: Mapping[str, Any]) -> str:
    """The page of a comparison of three: every slot that A or B changed, word by word against the base."""
    values = {
        "title": f"{page['base']} -> A {page['a']}, B {page['b']}",
        "summary": [
            f"A is {page['a']}, B is {page['b']}",
            verdicts_line(page["counts"]),
            agreement_line(page["agreement"]),
        ],
        "foot": f"rlanything buffer diff3, schema {page['schema']}",
    }
    return document("page.html.jinja", _THREE, [_three_row(row) for row in page["slots"]], values)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    change = ", ".join(row["directions"]) or row["status"]
    cells = [
        plain_cell(str(row["slot"]), row["slot"]),
        plain_cell(row["path"]),
        plain_cell(change),
        *(share_cell(row["accuracy"][side]) for side in ("old", "new")),
        task_cell(row["instruction"], row["fields"], row["reason"]),
    ]
    kinds = [row["status"], *sorted({event["kind"] for event in row["refused"]})]
    words = ["".join(part for _, part in row["instruction"]), change, *_words(row["fields"]), row["reason"]]
    return slot_row(row["slot"], kinds, cells, words)


def _three_row(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = [plain_cell(str(row["slot"]), row["slot"]), plain_cell(_verdict(row), row["verdict"])]
    words = [row["verdict"], row["base"] or ""]
    for side in (row["a"], row["b"]):
        cells += [plain_cell(f"{side['status']} {side['path']}"), share_cell(side["accuracy"])]
        sentence = word_diff(row["base"] or "", side["instruction"] or "")
        cells.append(task_cell(sentence, side["fields"], side["reason"]))
        words += [side["status"], side["instruction"] or "", *_words(side["fields"]), side["reason"]]
    ways = [f"{name} {row[side]['status']}" for name, side in (("A", "a"), ("B", "b"))]
    return slot_row(row["slot"], [row["verdict"], *ways], cells, words)


def _verdict(row: Mapping[str, Any]) -> str:
    shared = shared_line(row["shared"])
    return f"{row['verdict']}; {shared}" if shared else row["verdict"]


def _words(fields: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The texts that fields can be found by."""
    for field in fields:
        yield field_line(field)
        yield from (line.text for line in field_lines(field))
