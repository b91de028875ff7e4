"""The keyboard of the small desktop: letters that it lacks get keys, and what is held is let go. Part of the box.

xdotool gives a foreign letter a key for a moment only: applications that look the key up later lose the letter, and the
window manager has two changes of the keyboard to work through for each. Here a letter keeps its key until the key is
needed for another one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

DEVICE = 0x100
"""X's number for the keyboard that all others stand for (XkbUseCoreKbd)."""
MODIFIERS = 0xFF
UNICODE = 0x01000000
"""Added to a code point, it makes X's name of the letter. The letters up to U+00FF have their code points."""
BUTTONS = (1, 2, 3)


class Keyboard:
    """A connection to the X server that `DISPLAY` names. Raises `OSError` where there is none."""

    def __init__(self) -> None:
        self._x, self._test = ctypes.CDLL("libX11.so.6"), ctypes.CDLL("libXtst.so.6")
        self._x.XOpenDisplay.restype = ctypes.c_void_p
        self._x.XGetKeyboardMapping.restype = ctypes.POINTER(ctypes.c_ulong)
        found = self._x.XOpenDisplay(None)
        if not found:
            raise OSError("the X server does not answer")
        self._display = ctypes.c_void_p(found)
        self._lent = {(code, shifted): "" for shifted in (False, True) for code in self._spare()}

    def parts(self, text: str) -> Iterator[str]:
        """A text in parts. When one is given out, the keyboard has all of its letters, which may be those of others."""
        part, foreign = "", set[str]()
        for sign in text:
            if not sign.isascii() and len(foreign | {sign}) > len(self._lent):
                self.lend(foreign)
                yield part
                part, foreign = "", set()
            part += sign
            foreign |= set() if sign.isascii() else {sign}
        self.lend(foreign)
        yield part

    def lend(self, letters: set[str]) -> None:
        """Give places on keys to those of these letters that have none: at most as many as there are spare places."""
        letters = {letter for letter in letters if not letter.isascii()}
        free = [place for place, letter in self._lent.items() if letter not in letters]
        changed = set[int]()
        for letter in sorted(letters - set(self._lent.values())):
            place = free.pop(0)
            del self._lent[place]
            self._lent[place] = letter  # last in the order: places that were lent long ago are taken first
            changed.add(place[0])
        for code in sorted(changed):
            names = (_name(self._lent[code, False]), _name(self._lent[code, True]))
            self._x.XChangeKeyboardMapping(self._display, code, 2, (ctypes.c_ulong * 2)(*names), 1)
        self._x.XSync(self._display, 0)

    def let_go(self) -> None:
        """Let go of every key and button that is down, and of locks such as that of the capital letters."""
        down = ctypes.create_string_buffer(32)
        self._x.XQueryKeymap(self._display, down)
        for code in range(8, 256):
            if down.raw[code // 8] >> code % 8 & 1:
                self._test.XTestFakeKeyEvent(self._display, ctypes.c_uint(code), 0, ctypes.c_ulong(0))
        for button in BUTTONS:
            self._test.XTestFakeButtonEvent(self._display, ctypes.c_uint(button), 0, ctypes.c_ulong(0))
        for clear in (self._x.XkbLatchModifiers, self._x.XkbLockModifiers):
            clear(self._display, ctypes.c_uint(DEVICE), ctypes.c_uint(MODIFIERS), ctypes.c_uint(0))
        self._x.XSync(self._display, 0)

    def _spare(self) -> list[int]:
        """The keys that have no letter."""
        low, high, each = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self._x.XDisplayKeycodes(self._display, ctypes.byref(low), ctypes.byref(high))
        count = high.value - low.value + 1
        names = self._x.XGetKeyboardMapping(
            self._display, ctypes.c_ubyte(low.value), count, ctypes.byref(each)
        )
        return [
            low.value + key
            for key in range(count)
            if not any(names[key * each.value : (key + 1) * each.value])
        ]


def _name(letter: str) -> int:
    """X's number for a letter; 0 for ''."""
    if not letter:
        return 0
    return ord(letter) + (UNICODE if ord(letter) > 0xFF else 0)
