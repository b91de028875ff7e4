"""Views of the buffer as text for people: tables, plain where there is no terminal.

Instructions, replies and critics are written by models: nothing in them reaches the terminal as a control sequence.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from rlanything.buffer.pairs import as_pairs
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json

_ID = 12
"""Hex digits of an id or a digest that a table shows."""
_BESIDE = 52
"""Columns that a line of `ls` needs beside the instruction, up to ten million slots."""
_MOST_LINES = 30
"""Lines, or pairs of texts, of a fact that a page shows."""
_LONGEST = 400
"""Characters of a fact that a page shows; `--json` has all of it."""


@dataclass(frozen=True)
class Screen:
    """What is written to: how many columns it has, and whether it is a terminal that shows styles."""

    width: int = 120
    terminal: bool = False


def safe(text: str) -> str:
    """`text` with every character that is no visible sign or space (controls, bidi marks, surrogates) escaped."""
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def runs_text(rows: Sequence[Mapping[str, Any]], screen: Screen) -> str:
    """A table of runs, and below it what is wrong with those that cannot be read."""
    cells = [
        [
            safe(row["run"]),
            *(str(row.get(key, "-")) for key in ("iterations", "slots", "accepted")),
            _digest(row),
        ]
        for row in rows
    ]
    wrong = [safe(row["error"]) + "\n" for row in rows if "error" in row]
    names = ("run", "iterations", "slots", "accepted", "digest")
    return "".join([*aligned(names, cells, {1, 2, 3}, screen), *wrong])


def run_text(page: Mapping[str, Any], screen: Screen) -> str:
    """One run: a summary, and a table of its slots, one line each."""
    counts = ", ".join(f"{page[key]} {key}" for key in ("slots", "changed", "accepted"))
    title = f"{page['run']}  iteration {page['iteration']}: {counts}; digest {_digest(page)}"
    top = lay_out([heading(title), *_torn(page["torn_bytes"])], screen)
    if not page["rows"]:
        return top + "no slot has changed\n"
    room = max(16, screen.width - _BESIDE)
    cells = [
        [
            str(row["slot"]),
            str(row["versions"]),
            row["direction"] or "-",
            cut(one_line(row["instruction"]), room),
            _step(row),
        ]
        for row in page["rows"]
    ]
    names = ("slot", "versions", "direction", "instruction", "accuracy")
    return top + "".join(aligned(names, cells, {0, 1}, screen))


def slot_text(page: Mapping[str, Any], screen: Screen) -> str:
    """One slot: the task asked for, its lineage, what happened to it, and what the critic said."""
    task = page["task"]
    title = f"{page['run']}  slot {page['slot']}, {page['role']}, at iteration {page['iteration']}"
    parts: list[RenderableType] = [
        heading(title),
        plain(f"task {task['task_id']}  env {safe(task['env'])}"),
    ]
    parts += _section("instruction", [_lines(task["instruction"])])
    parts += _section("facts", _facts(task["payload"]))
    parts += _section("metadata", _facts(task["metadata"]))
    parts += _section("lineage", [_lineage(page["versions"])])
    parts += _section("events", [_events(page["events"])] if page["events"] else [])
    parts += _section("rollouts", [_rollouts(page)] if page["rollouts"] else [])
    parts += _section("critic", [line for event in _critics(page["events"]) for line in _critic(event)])
    return lay_out(parts, screen)


def _lineage(versions: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("version", "iteration", "direction", "accuracy", "task", "instruction")
    for row in versions:
        what = (
            f"v{row['number']}",
            row["iteration"],
            row["direction"] or "-",
            _step(row),
            row["task_id"][:_ID],
        )
        _add(table, *what, row["instruction"])
    return table


def _events(events: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("iteration", "event", "direction", "accuracy", "task", "about")
    for event in events:
        task = event["task"] or {"task_id": "-", "instruction": ""}
        accuracy = _step({"accuracy_before": event["parent_accuracy"], "accuracy": event["accuracy"]})
        what = (event["iteration"], event["kind"], event["direction"], accuracy, task["task_id"][:_ID])
        _add(table, *what, event["reason"] or task["instruction"])
    return table


def _rollouts(page: Mapping[str, Any]) -> Table:
    numbers = {row["task_id"]: f"v{row['number']}" for row in page["versions"]}
    table = _table("iteration", "task", "solved", "accuracy", "of")
    for row in page["rollouts"]:
        accuracy = share(row["solved"] / row["rollouts"] if row["rollouts"] else None)
        what = "a proposal" if row["proposal"] else numbers.get(row["task_id"], "another task")
        solved = f"{row['solved']} of {row['rollouts']}"
        _add(table, row["iteration"], row["task_id"][:_ID], solved, accuracy, what)
    return table


def _critics(events: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The events whose critic was not said before: a proposal and what became of it carry the same words."""
    said = {""}
    for event in events:
        if event["critic"] not in said:
            said.add(event["critic"])
            yield event


def _critic(event: Mapping[str, Any]) -> list[RenderableType]:
    return [plain(f"  iteration {event['iteration']}, {event['kind']}:"), _lines(event["critic"], indent=4)]


def _facts(values: Mapping[str, Json]) -> list[RenderableType]:
    return [line for key, value in sorted(values.items()) for line in _fact(key, value)]


def _fact(key: str, value: Json) -> list[Text]:
    """A value on a line of its own; pairs of texts and the lines of a text below it."""
    pairs = as_pairs(value)
    if pairs:
        told = [f"{quoted(first)} -> {quoted(second)}" for first, second in pairs]
        return _listed(f"{safe(key)}: {len(pairs)}", told)
    if isinstance(value, str) and "\n" in value:
        return _listed(f"{safe(key)}:", [safe(line) for line in value.split("\n")])
    text = value if isinstance(value, str) else canonical_json(value)
    rest = f" ... ({len(text) - _LONGEST} characters more)" if len(text) > _LONGEST else ""
    return [plain(f"  {safe(key)}: {safe(text[:_LONGEST])}{rest}".rstrip())]


def _listed(head: str, lines: Sequence[str]) -> list[Text]:
    more = [f"... {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
    shown = [line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in lines[:_MOST_LINES]]
    return [plain(f"  {head}"), *(plain(f"    {line}") for line in (*shown, *more))]


def quoted(text: str) -> str:
    """A text as JSON writes it: where it ends, and what is a line break, can be seen."""
    return safe(json.dumps(text, ensure_ascii=False))


def _step(row: Mapping[str, Any]) -> str:
    before, after = row["accuracy_before"], row["accuracy"]
    if before is None and after is None:
        return "-"
    return f"{share(before)} -> {share(after)}"


def share(value: float | None) -> str:
    """An accuracy, or ? where it was not measured."""
    return "?" if value is None else f"{value:.3f}"


def _digest(row: Mapping[str, Any]) -> str:
    return safe(row["digest"][:_ID]) if "digest" in row else "unreadable"


def _torn(size: int) -> list[Text]:
    told = f"events.jsonl ends in {size} bytes of a record cut short; they are left out"
    return [plain(told)] if size else []


def aligned(
    names: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int], screen: Screen
) -> Iterator[str]:
    """Lines of a table, one a row, nothing wrapped. Rich would lay out every cell: minutes for a million slots."""
    lengths = [[cell_len(cell) for cell in row] for row in (names, *rows)]
    widths = [max(column) for column in zip(*lengths, strict=True)]
    for row, taken in zip((names, *rows), lengths, strict=True):
        gaps = [" " * (width - length) for width, length in zip(widths, taken, strict=True)]
        cells = [
            gap + cell if k in numbers else cell + gap
            for k, (cell, gap) in enumerate(zip(row, gaps, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        yield (f"\x1b[1m{line}\x1b[0m\n" if screen.terminal and row is names else f"{line}\n")


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name == "iteration" else "left")
    return table


def _add(table: Table, *cells: object) -> None:
    # Text, not str: square brackets in a task are no markup.
    table.add_row(*(Text(one_line(str(cell))) for cell in cells))


def one_line(text: str) -> str:
    """`text` made safe, its runs of blanks and line breaks single spaces."""
    return safe(" ".join(text.split()))


def cut(text: str, width: int) -> str:
    """`text` in at most `width` columns, a cut one ending in an ellipsis."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def heading(text: str) -> Text:
    """A bold line, made safe."""
    return Text(safe(text), style="bold")


def plain(text: str) -> Text:
    """A line as it is: square brackets in it are no markup."""
    return Text(text)


def _lines(text: str, indent: int = 2) -> Text:
    return Text("\n".join(" " * indent + safe(line) for line in text.split("\n")))


def _section(name: str, parts: Sequence[RenderableType]) -> list[RenderableType]:
    return [Text(""), heading(name), *parts] if parts else []


def lay_out(parts: Sequence[RenderableType], screen: Screen) -> str:
    """The parts one below the other, without trailing spaces; an empty `Text` is a blank line."""
    console = Console(
        width=screen.width, force_terminal=screen.terminal, markup=False, highlight=False, emoji=False
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, Text) and not screen.terminal)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
