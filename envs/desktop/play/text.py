"""A desktop as text: one line for each item that is shown."""

from __future__ import annotations

from envs.computer.said import quoted
from envs.desktop.play.screen import Item, View


def lines(view: View) -> list[str]:
    """One line for each item: `[3] push-button "Save"`."""
    left_out = [f"({view.more} more not shown)"] if view.more else []
    return [*map(_line, view.items), *left_out]


def _line(item: Item) -> str:
    value = f" value {quoted(item.value)}" if item.value and item.value != item.name else ""
    return f"[{item.number}] {item.role} {quoted(item.name)}{value}{f' {item.state}' if item.state else ''}"
