"""What `ls` and `show` print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rlanything.buffer.views.tasks.text_pairs import as_pairs
from rlanything.buffer.views.terminal import Screen, aligned, cut, heading, lay_out, plain, quoted, share
from rlanything.core.ids import canonical_json
from rlanything.core.printable import one_line, safe
from rlanything.core.types import Json

_ID = 12
"""Hex digits of an id or a digest that are shown."""
_BESIDE = 52
"""Columns of a line of `ls` beside the instruction, for up to ten million slots."""
_MOST_LINES = 30
"""Lines, or pairs of texts, of a field that are shown."""
_LONGEST = 400
"""Characters of a field that are shown; `--json` has all of it."""


def ls_text(page: Mapping[str, Any] | Sequence[Mapping[str, Any]], screen: Screen) -> str:
    """What `ls` prints: one run, or a list of runs."""
    return _run(page, screen) if isinstance(page, Mapping) else _runs(page, screen)


def _runs(rows: Sequence[Mapping[str, Any]], screen: Screen) -> str:
    """A table of runs, and below it the errors of those that cannot be read."""
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


def _run(page: Mapping[str, Any], screen: Screen) -> str:
    """One run: a summary, and one line a slot."""
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
    """One slot: the task, its versions, its events, its rollouts and the critic."""
    task = page["task"]
    title = f"{page['run']}  slot {page['slot']}, {page['role']}, at iteration {page['iteration']}"
    parts: list[RenderableType] = [
        heading(title),
        plain(f"task {task['task_id']}  env {safe(task['env'])}"),
    ]
    parts += _section("instruction", [_lines(task["instruction"])])
    parts += _section("facts", _fields(task["payload"]))
    parts += _section("metadata", _fields(task["metadata"]))
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
    """The events with a new critic. A proposal and its decision have the same one."""
    said = {""}
    for event in events:
        if event["critic"] not in said:
            said.add(event["critic"])
            yield event


def _critic(event: Mapping[str, Any]) -> list[RenderableType]:
    return [plain(f"  iteration {event['iteration']}, {event['kind']}:"), _lines(event["critic"], indent=4)]


def _fields(values: Mapping[str, Json]) -> list[RenderableType]:
    return [line for key, value in sorted(values.items()) for line in _field(key, value)]


def _field(key: str, value: Json) -> list[Text]:
    """A field on one line; pairs of texts and the lines of a long text below it."""
    pairs = as_pairs(value)
    if pairs:
        rows = [f"{quoted(first)} -> {quoted(second)}" for first, second in pairs]
        return _listed(f"{safe(key)}: {len(pairs)}", rows)
    if isinstance(value, str) and "\n" in value:
        return _listed(f"{safe(key)}:", [safe(line) for line in value.split("\n")])
    text = value if isinstance(value, str) else canonical_json(value)
    rest = f" ... ({len(text) - _LONGEST} characters more)" if len(text) > _LONGEST else ""
    return [plain(f"  {safe(key)}: {safe(text[:_LONGEST])}{rest}".rstrip())]


def _listed(head: str, lines: Sequence[str]) -> list[Text]:
    more = [f"... {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
    shown = [line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..." for line in lines[:_MOST_LINES]]
    return [plain(f"  {head}"), *(plain(f"    {line}") for line in (*shown, *more))]


def _step(row: Mapping[str, Any]) -> str:
    before, after = row["accuracy_before"], row["accuracy"]
    if before is None and after is None:
        return "-"
    return f"{share(before)} -> {share(after)}"


def _digest(row: Mapping[str, Any]) -> str:
    return safe(row["digest"][:_ID]) if "digest" in row else "unreadable"


def _torn(size: int) -> list[Text]:
    line = f"events.jsonl ends in {size} bytes of a record cut short; they are left out"
    return [plain(line)] if size else []


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(name, justify="right" if name == "iteration" else "left")
    return table


def _add(table: Table, *cells: object) -> None:
    # Text, not str: square brackets in a task are no markup.
    table.add_row(*(Text(one_line(str(cell))) for cell in cells))


def _lines(text: str, indent: int = 2) -> Text:
    return Text("\n".join(" " * indent + safe(line) for line in text.split("\n")))


def _section(name: str, parts: Sequence[RenderableType]) -> list[RenderableType]:
    return [Text(""), heading(name), *parts] if parts else []
