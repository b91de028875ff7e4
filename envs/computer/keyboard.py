"""The keys that an action may name, and whether they can be held down."""

from __future__ import annotations

from dataclasses import dataclass

ALIASES = {
    "return": "enter", "esc": "escape", "del": "delete", "control": "ctrl", "ctrlleft": "ctrl",
    "ctrlright": "ctrl", "altleft": "alt", "altright": "alt", "shiftleft": "shift", "shiftright": "shift",
    "pgup": "pageup", "pgdn": "pagedown", "page_up": "pageup", "page_down": "pagedown", "win": "super",
    "winleft": "super", "winright": "super", "meta": "super", "\n": "enter", "\t": "tab",
}  # fmt: skip
"""Other names of keys, among them those of pyautogui that OSWorld lists."""


@dataclass(frozen=True, slots=True)
class Keyboard:
    """names: keys with a name; letters, digits and signs are keys too. holds: whether keys can stay down.

    Without `holds`, a chord is its keys one after the other, and a key that goes down comes up at once.
    """

    names: tuple[str, ...]
    holds: bool

    def key(self, name: str) -> str | None:
        """A key by its name, or None for an unknown one."""
        if len(name) == 1 and name.isprintable():
            return name
        folded = ALIASES.get(name.lower(), name.lower()).removeprefix("arrow")
        return folded if folded in self.names else None


PAGE_KEYS = ("enter", "tab", "backspace", "escape", "up", "down", "left", "right", "space", "delete")
PAGE = Keyboard(PAGE_KEYS, holds=False)
"""A web page, whose events are made one by one."""
DESKTOP = Keyboard(
    (
        *PAGE_KEYS, "ctrl", "alt", "shift", "super", "home", "end", "pageup", "pagedown", "insert", "capslock",
        *(f"f{number}" for number in range(1, 13)),
    ),
    holds=True,
)  # fmt: skip
"""A desktop with a real keyboard."""
