"""A changed field as text: one line, and below it the lines, items or pairs that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.buffer.views.tasks.task_fields import spelled
from rlanything.buffer.views.tasks.text_pairs import Fate
from rlanything.buffer.views.tasks.word_diff import Part
from rlanything.buffer.views.terminal import cut, quoted
from rlanything.core.ids import canonical_json
from rlanything.core.printable import one_line, safe
from rlanything.core.types import Json

_LONGEST = 160
"""Columns of a value, or of a part of a line, that are shown; `--json` has all of it."""
_AROUND = 80
"""Characters of unchanged text that are shown on either side of a change."""
_MARKS = {"same": " ", "old": "-", "new": "+"}
_ORDER = (Fate.CHANGED, Fate.ADDED, Fate.REMOVED, Fate.KEPT)


@dataclass(frozen=True, slots=True)
class FieldLine:
    """A line of a field's change. mark: `-` removed, `+` added, `~` changed, a blank for unchanged."""

    mark: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """As plain text. A change within the line is marked as git marks words."""
        if self.mark != "~":
            return f"{self.mark} {''.join(text for _, text in self.parts)}".rstrip()
        return f"~ {''.join(marked(kind, text) for kind, text in self.parts)}"


def field_line(field: Mapping[str, Any]) -> str:
    """`knobs.copies: 2 -> 1`; `+` or `-` before a field of one task only; lists and long texts by their lengths."""
    name = one_line(field["field"])
    if "pairs" in field:
        counts = Counter(change["fate"] for change in field["pairs"])
        fates = ", ".join(f"{counts[fate.value]} {fate.value}" for fate in Fate)
        return f"{name}: {field['old'] or 0} -> {field['new'] or 0}; {fates}"
    if "lines" in field:
        return f"{name}: {_length(field['old'])} -> {_length(field['new'])}"
    if field["in"] == "both":
        return f"{name}: {_value(field['old'])} -> {_value(field['new'])}"
    sign, value = ("+", field["new"]) if field["in"] == "new" else ("-", field["old"])
    return f"{sign} {name}: {_value(value)}"


def field_lines(field: Mapping[str, Any], *, whole: bool = False) -> list[FieldLine]:
    """The lines below `field_line`; none for a scalar. whole: also all lines that did not change."""
    if "pairs" in field:
        ordered = sorted(field["pairs"], key=lambda change: _ORDER.index(Fate(change["fate"])))
        return [_pair(change) for change in ordered if whole or change["fate"] != Fate.KEPT]
    lines = [FieldLine(_MARKS[kind], ((kind, _short(text)),)) for kind, text in field.get("lines", ())]
    return lines if whole else list(_near_changes(lines))


def marked(kind: str, text: str) -> str:
    """Part of a text as git marks words: [-old-]{+new+}."""
    if kind == "same":
        return text
    return f"[-{text}-]" if kind == "old" else f"{{+{text}+}}"


def shortened(parts: Sequence[Part]) -> list[Part]:
    """The parts, with long unchanged text cut; `--json` has all of it."""
    last = len(parts) - 1
    return [
        (kind, _stretch(text, first=k == 0, last=k == last) if kind == "same" else text)
        for k, (kind, text) in enumerate(parts)
    ]


def _stretch(text: str, *, first: bool, last: bool) -> str:
    head = text[:_AROUND].rpartition(" ")[0] if not first or last else ""
    tail = text[-_AROUND:].partition(" ")[2] if not last else ""
    if len(text) <= 2 * _AROUND + len(" [...] "):
        return text
    return f"{head} [...] {tail}" if head else f"[...] {tail}"


def _pair(change: Mapping[str, Any]) -> FieldLine:
    first, old, new = (
        None if change[k] is None else _short(quoted(change[k])) for k in ("first", "old", "new")
    )
    lead = f"{first} -> "
    if change["fate"] == Fate.CHANGED:
        return FieldLine("~", (("same", lead), ("old", old or ""), ("new", new or "")))
    kind = {Fate.KEPT: "same", Fate.ADDED: "new", Fate.REMOVED: "old"}[Fate(change["fate"])]
    return FieldLine(_MARKS[kind], ((kind, f"{lead}{old if new is None else new}"),))


def _near_changes(lines: Sequence[FieldLine]) -> Iterator[FieldLine]:
    """Changed lines with one unchanged line on either side; `...` stands for the others."""
    changed = {k for k, line in enumerate(lines) if line.mark != " "}
    shown = {k + step for k in changed for step in (-1, 0, 1) if 0 <= k + step < len(lines)}
    for k in sorted(shown):
        if k and k - 1 not in shown:
            yield FieldLine(" ", (("same", "..."),))
        yield lines[k]
    if shown and max(shown) < len(lines) - 1:
        yield FieldLine(" ", (("same", "..."),))


def _length(value: Json) -> str:
    if isinstance(value, list):
        return f"{len(value)} item{'s' * (len(value) != 1)}"
    lines = len((value or "").splitlines())
    return f"{lines} line{'s' * (lines != 1)}"


def _value(value: Json) -> str:
    return _short(
        one_line(canonical_json(value) if isinstance(value, list | dict) and value else spelled(value))
    )


def _short(text: str) -> str:
    return cut(safe(text), _LONGEST)
