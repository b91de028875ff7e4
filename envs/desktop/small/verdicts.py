"""Verifiers: what files and applications must be like. Part of the program in the box; tasks name them in data.

A check is an object with one of the keys `file`, `folder`, `absent`, `cell` and `shown`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

Items = Callable[[], Iterable[tuple[str, str, str, bool]]]
LARGEST = 2**20
"""Bytes of a file that are read."""
_CELL = re.compile(r"[A-Z][1-9][0-9]{0,4}")
GNUMERIC = "{http://www.gnumeric.org/v10.dtd}"


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
    return KINDS[kind](check, home, items)


def _file(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{file: a.txt}` exists; `equals`: its text, apart from white space at its end; `contains`: a part of it."""
    path = home / check["file"]
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        text = opened.read(LARGEST).decode("utf-8", "replace")
    if "equals" in check:
        return text.rstrip() == str(check["equals"]).rstrip()
    return all(part in text for part in check.get("contains", []))


def _folder(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{folder: a}` exists; `holds`: the names in it, no more and no less."""
    path = home / check["folder"]
    if not path.is_dir():
        return False
    return "holds" not in check or sorted(place.name for place in path.iterdir()) == sorted(check["holds"])


def _absent(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{absent: a.txt}` is not there."""
    return not (home / check["absent"]).exists()


def _cell(check: dict[str, Any], home: Path, _items: Items) -> bool:
    """`{cell: B3, of: sheet.gnumeric, value: "7"}`: a cell of the first sheet; a formula has its `formula`."""
    path = home / check["of"]
    raw = path.read_bytes()[: 8 * LARGEST]
    root = ElementTree.fromstring(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    column, row = ord(check["cell"][0]) - ord("A"), int(check["cell"][1:]) - 1
    for cell in root.iter(f"{GNUMERIC}Cell"):
        if (cell.get("Col"), cell.get("Row")) == (str(column), str(row)):
            return (cell.text or "").strip() == str(check["value"])
    return str(check["value"]) == ""


def _shown(check: dict[str, Any], _home: Path, items: Items) -> bool:
    """`{shown: "42", role: text}`: an item in sight whose text or name is this, or `contains` it."""
    wanted, role = str(check["shown"]), check.get("role")
    for found, name, text, _focused in items():
        if role in (None, found) and wanted in (name.strip(), text.strip()):
            return True
    return False


KINDS: dict[str, Callable[[dict[str, Any], Path, Items], bool]] = {
    "file": _file, "folder": _folder, "absent": _absent, "cell": _cell, "shown": _shown,
}  # fmt: skip
KEYS = {
    "file": (("file",), ("equals", "contains")), "folder": (("folder",), ("holds",)), "absent": (("absent",), ()),
    "cell": (("cell", "of", "value"), ()), "shown": (("shown",), ("role",)),
}  # fmt: skip
"""The keys that a check of a kind has, and those that it may have."""
LISTS = ("contains", "holds")
