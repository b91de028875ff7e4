"""The keys that an action may name, on a page and on a desktop."""

from __future__ import annotations

from dataclasses import dataclass

ALIASES = {
    "return": "enter", "esc": "escape", "del": "delete", "control": "ctrl", "ctrlleft": "ctrl",
    "ctrlright": "ctrl", "altleft": "alt", "altright": "alt", "shiftleft": "shift", "shiftright": "shift",
    "pgup": "pageup", "pgdn": "pagedown", "page_up": "pageup", "page_down": "pagedown", "win": "super",
    "winleft": "super", "winright": "super", "meta": "super", "\n": "enter", "\t": "tab",
}  # fmt: skip
"""Other names of keys, among them those of pyautogui that OSWorld lists."""


def together(names: str) -> list[str]:
    """The names in `ctrl+s`, which are pressed together. A plus at the end is a key: `ctrl++`, and `+` alone.

    `ctrl+S` is the key S: a capital letter would add shift.
    """
    if names == "+":
        return [names]
    said = [*names[:-2].split("+"), "+"] if names.endswith("++") and names != "++" else names.split("+")
    return [name.lower() if name.isascii() else name for name in said] if len(said) > 1 else said


@dataclass(frozen=True, slots=True)
class Keyboard:
    """names: keys with a name; letters, digits and signs are keys too. notches: whether a wheel counts notches.

    Without `notches`, a tool call scrolls by pixels.
    """

    names: tuple[str, ...]
    notches: bool

    def key(self, name: str) -> str | None:
        """A key by its name, or None for an unknown one."""
        if len(name) == 1 and name.isprintable():
            return name
        folded = ALIASES.get(name.lower(), name.lower()).removeprefix("arrow")
        return folded if folded in self.names else None


PAGE = Keyboard(
    (
        "enter", "tab", "backspace", "escape", "up", "down", "left", "right", "space", "delete", "home", "end",
        "pageup", "pagedown", "ctrl", "alt", "shift",
    ),
    notches=False,
)  # fmt: skip
"""A web page: the keys that mean something to it, and none that mean something to the browser."""
DESKTOP = Keyboard(
    (*PAGE.names, "super", "insert", "capslock", *(f"f{number}" for number in range(1, 13))), notches=True
)
"""A desktop with a real keyboard."""
