"""The frame of a comparison's page: one file that loads nothing else, with a table of slots to filter and sort.

The slots are in the page as JSON, and the page's script makes the table from text nodes only. So text of tasks stays
text. The look and the policy are those of all pages (`rlanything.pages`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.buffer.views.compare.field_lines import field_line, field_lines
from rlanything.buffer.views.tasks.word_diff import Part
from rlanything.buffer.views.terminal import share
from rlanything.core.printable import safe
from rlanything.pages import frame

Cell = dict[str, Any]
"""What a cell shows, and `sort`, the value that it is sorted by; null comes last."""
_TEMPLATES = Path(__file__).with_name("templates")
_TOP, _SLOTS = "result", frame.Section("slots-of-both", "Slots")


def document(
    template: str,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[Cell],
    values: Mapping[str, Any],
    sections: Sequence[frame.Section] = (),
) -> str:
    """The whole page.

    columns: name and class ('n' for numbers). values, sections: what the template needs beside the table.
    """
    style, script = ((_TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    shown = {**values, "start": _TOP, "data": {"columns": columns, "rows": rows}}
    return frame.page(shown, [*sections, _SLOTS], _TEMPLATES / template, style=style, scripts=[script])


def slot_row(slot: int, kinds: Sequence[str], cells: Sequence[Cell], words: Sequence[str]) -> dict[str, Any]:
    """A slot: its cells, the `kinds` it can be filtered by, and the texts (`words`) it can be found by."""
    search = safe("\n".join([f"slot {slot}", *words])).lower()
    return {"slot": slot, "kinds": list(kinds), "cells": list(cells), "search": search}


def plain_cell(text: str, sort: str | int | None = None) -> Cell:
    """A cell of text, sorted by it or by `sort`."""
    return {"text": safe(text), "sort": safe(text) if sort is None else sort}


def share_cell(value: float | None) -> Cell:
    """A cell with an accuracy. One that was not measured comes last."""
    return {"text": share(value), "sort": value}


def task_cell(parts: Sequence[Part], fields: Sequence[Mapping[str, Any]], reason: str = "") -> Cell:
    """A cell with an instruction, word by word, the changed fields, and why; sorted by the new instruction."""
    text = "".join(part for kind, part in parts if kind != "old")
    shown = [[kind, "\n".join(map(safe, part.split("\n")))] for kind, part in parts]
    return {"parts": shown, "fields": list(map(_field, fields)), "reason": safe(reason), "sort": safe(text)}


def _field(field: Mapping[str, Any]) -> Cell:
    """A field's first line, and the lines below it with those that did not change."""
    lines = field_lines(field, whole=True)
    return {
        "head": field_line(field),
        "lines": [[line.mark, [list(part) for part in line.parts]] for line in lines],
    }
