"""Verifiers: what files and applications must be like. Part of the program in the box; tasks name them in data.

A check is an object with one of the keys `file`, `folder`, `absent`, `cell` and `shown`. Files are the agent's: one
that cannot be read, whatever is in it, is no error. The check does not hold.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

Items = Callable[[], Iterable[tuple[str, str, str, bool]]]
LARGEST = 2**20
"""Bytes of a text that are read; what follows is not looked at."""
LARGEST_SHEET = 8 * 2**20
"""Bytes of a spreadsheet, packed and unpacked. A check of a larger one does not hold."""
GNUMERIC = "http://www.gnumeric.org/v10.dtd"
_CELL = re.compile(r"[A-Z][1-9][0-9]{0,4}")
_GZIP = b"\x1f\x8b"


def flaw(check: object) -> str:
    """What is wrong with a check, or ''."""
    kind = next((name for name in KINDS if name in check), None) if isinstance(check, dict) else None
    if not isinstance(check, dict) or kind is None:
        return f"a check has one of the keys {', '.join(KINDS)}"
    needed, more = KEYS[kind]
    if not set(needed) <= check.keys() <= {*needed, *more}:
        may = f"and may have {', '.join(more)}" if more else "and no more"
        return f"a check of the kind {kind} has the keys {', '.join(needed)} {may}"
    texts = [one for value in check.values() for one in (value if isinstance(value, list) else [value])]
    if not all(isinstance(text, str) and "\0" not in text for text in texts):
        return f"a value in a check of the kind {kind} is no text"
    if any(isinstance(value, list) is not (name in LISTS) for name, value in check.items()):
        return f"only {' and '.join(LISTS)} are lists"
    if "cell" in check and not _CELL.fullmatch(check["cell"]):
        return "a cell is a letter and a number, such as B3"
    return ""


def holds(check: dict[str, Any], home: Path, items: Items) -> bool:
    """Whether a check without a `flaw` holds."""
    kind = next(name for name in KINDS if name in check)
    try:
        return KINDS[kind](check, home, items)
    except (OSError, ValueError, zlib.error, expat.ExpatError):  # what the agent made of its files
        return False


def _file(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{file: a.txt}` is a file; `equals`: its text, apart from white space at its end; `contains`: parts of it."""
    path = home / check["file"]
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        text = opened.read(LARGEST).decode("utf-8", "replace")
    if "equals" in check and text.rstrip() != check["equals"].rstrip():
        return False
    return all(part in text for part in check.get("contains", []))


def _folder(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{folder: a}` is a folder; `holds`: the names in it, no more and no less."""
    path = home / check["folder"]
    if not path.is_dir():
        return False
    return "holds" not in check or sorted(place.name for place in path.iterdir()) == sorted(check["holds"])


def _absent(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{absent: a.txt}` is not there."""
    return not (home / check["absent"]).exists()


def _cell(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{cell: B3, of: a.gnumeric, value: "7"}`: what was entered in a cell of the first sheet, from column A to Z.

    That is the formula where there is one, as in `=A1+B1`. An empty value is that of a cell without any.
    """
    path = home / check["of"]
    if not path.is_file():
        return False
    column, row = str(ord(check["cell"][0]) - ord("A")), str(int(check["cell"][1:]) - 1)
    return _first_sheet(path).get((column, row), "").strip() == check["value"]


def _first_sheet(path: Path) -> dict[tuple[str, str], str]:
    """(column, row) -> text of the cells of the first sheet of Gnumeric's format, packed or not.

    Raises `OSError`, `ValueError`, also for an encoding that nobody knows, `zlib.error`, and `ExpatError`.
    """
    with path.open("rb") as opened:
        raw = opened.read(LARGEST_SHEET + 1)
    if raw.startswith(_GZIP):
        raw = zlib.decompressobj(wbits=31).decompress(raw, LARGEST_SHEET + 1)
    if len(raw) > LARGEST_SHEET:
        raise ValueError("the spreadsheet is too large")
    found = _Cells()
    try:
        found.parser.Parse(raw, True)
    except LookupError as error:
        raise ValueError("an encoding that nobody knows") from error
    return found.texts


class _Cells:
    """Collects the cells of the first sheet. A document type is refused: its entities could grow without end."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], str] = {}
        self._sheets = 0
        self._at: tuple[str, str] | None = None
        self._pieces: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True  # otherwise every line break is a piece
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _start(self, name: str, given: dict[str, str]) -> None:
        self._sheets += name == f"{GNUMERIC} Sheet"
        if name == f"{GNUMERIC} Cell" and self._sheets == 1:
            self._keep()
            self._at = given.get("Col", ""), given.get("Row", "")

    def _text(self, data: str) -> None:
        if self._at is not None:
            self._pieces.append(data)

    def _end(self, name: str) -> None:
        if name == f"{GNUMERIC} Cell":
            self._keep()

    def _keep(self) -> None:
        """The text of the cell that ends here, joined at once: adding piece after piece takes quadratic time."""
        if self._at is not None:
            self.texts[self._at] = "".join(self._pieces)
        self._at = None
        self._pieces.clear()

    def _refuse(self, *_: object) -> None:
        raise ValueError("a spreadsheet declares no document type")


def _shown(check: dict[str, Any], _home: Path, items: Items) -> bool:
    """`{shown: "42", role: text}`: an item in sight, of this role if one is named, whose name or text is this."""
    wanted, role = check["shown"], check.get("role")
    return any(
        role in (None, found) and wanted in (name.strip(), text.strip())
        for found, name, text, _focused in items()
    )


KINDS: dict[str, Callable[[dict[str, Any], Path, Items], bool]] = {
    "file": _file, "folder": _folder, "absent": _absent, "cell": _cell, "shown": _shown,
}  # fmt: skip
KEYS = {
    "file": (("file",), ("equals", "contains")), "folder": (("folder",), ("holds",)), "absent": (("absent",), ()),
    "cell": (("cell", "of", "value"), ()), "shown": (("shown",), ("role",)),
}  # fmt: skip
"""The keys that a check of a kind has, and those that it may have."""
LISTS = ("contains", "holds")
