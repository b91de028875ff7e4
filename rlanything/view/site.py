"""The files of a page: a folder whose parts load when they are opened, or one file with all of them.

Parts are gzipped JSON, and pictures PNG. The page reads parts with `fetch` and never as scripts. A policy in the page
lets the browser run the page's own scripts only, and load nothing from elsewhere.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rlanything.core.images.png import NAME
from rlanything.core.look import COLOURS
from rlanything.core.types import Json
from rlanything.pages import frame

PAGE = Path(__file__).with_name("page")
STYLE = "view.css"
SCRIPTS = (
    *("address.js", "data.js", "text.js", "notes.js", "search.js", "bars.js", "barred.js", "list.js"),
    *(
        "noted.js",
        "pictures.js",
        "task.js",
        "steps.js",
        "parting.js",
        "pairs.js",
        "beside.js",
        "controls.js",
        "view.js",
    ),
)
"""In the order in which they are loaded; each uses what those before it define."""
_LEVEL = 6
_INDEX = "index.html"
_SCRIPT = "view.js"
"""All scripts of a folder in one: where a page has a policy, browsers ask for scripts one after the other."""
_DATA = "data"
_PICTURES = "pictures"
_SUFFIX = ".json.gz"
BESIDE = "against"
"""The folder inside `data/` with the parts of the run that the first is compared with."""
_PART = re.compile(
    rf"(?:{BESIDE}/)?(?:index|(?:iterations|tokens|history|words)/\d{{1,9}})\.json\.gz", re.ASCII
)
"""A part, from `data/`: what `writing` makes."""
_FIRST = b"<!doctype html>\n<!-- A page of rlanything view in one file. -->\n"
"""How a single file begins; `page/index.html.jinja` writes it."""


class Site:
    """Writes the parts of a page into the folder that is being made."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self.prefix = folder, prefix

    def within(self, name: str) -> Site:
        """The same, whose parts go into a folder of their own."""
        return Site(self.folder, f"{name}/")

    def part(self, name: str, value: Json) -> None:
        """One part, e.g. `iterations/3`. Numbers that are not finite become null. Raises `OSError`."""
        path = self.folder / _DATA / f"{self.prefix}{name}{_SUFFIX}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(_json(value).encode("ascii"), _LEVEL, mtime=0))

    def picture(self, name: str, file: Path) -> None:
        """A picture by its sha256, once for all runs of the page. Raises `OSError`."""
        path = self.folder / _DATA / _PICTURES / f"{name}.png"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read_bytes())

    def pictures(self) -> Iterator[tuple[str, bytes]]:
        """(name, PNG) of the pictures so far."""
        for path in sorted((self.folder / _DATA / _PICTURES).glob("*.png")):
            yield path.stem, path.read_bytes()

    def parts(self) -> Iterator[tuple[str, bytes]]:
        """(name, gzipped JSON) of the parts so far."""
        top = self.folder / _DATA
        for path in sorted(top.rglob(f"*{_SUFFIX}")):
            yield path.relative_to(top).as_posix().removesuffix(_SUFFIX), path.read_bytes()

    def page(self, title: str) -> None:
        """The page that loads its parts. title: without characters that cannot be seen."""
        values = {"script": _SCRIPT, "style": STYLE, "index": f"{_DATA}/index{_SUFFIX}"}
        text = _render({"title": title, "single": False, **values})
        (self.folder / _INDEX).write_text(text, encoding="utf-8")
        (self.folder / STYLE).write_text(_style(), encoding="utf-8")
        (self.folder / _SCRIPT).write_bytes(b"".join((PAGE / name).read_bytes() for name in SCRIPTS))

    def single(self, title: str) -> str:
        """The page with all parts inside, as one text. Raises `OSError`."""
        scripts = [(PAGE / name).read_text(encoding="utf-8") for name in SCRIPTS]
        style = _style()
        parts = {name: base64.b64encode(data).decode() for name, data in self.parts()}
        values = {
            "scripts": [Markup(script) for script in scripts],
            "policy": frame.policy(style, scripts),
            "style": Markup(style),
            "parts": parts,
            "pictures": {name: base64.b64encode(png).decode() for name, png in self.pictures()},
        }
        return _render({"title": title, "single": True, **values})


def is_folder(place: Path) -> bool:
    """Whether a folder is empty or holds what `Site` writes and nothing else, so that it may be replaced."""
    if not place.is_dir():
        return False
    top = {path.name for path in place.iterdir()}
    known = {_INDEX, STYLE, _SCRIPT, *SCRIPTS, _DATA}  # older pages have every script alone
    ours = top <= known and (place / _DATA / f"index{_SUFFIX}").is_file()
    return not top or (ours and all(_written(path, place / _DATA) for path in place.rglob("*")))


def is_single(file: Path) -> bool:
    """Whether a file is a page that `Site.single` wrote, so that it may be replaced."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_FIRST)) == _FIRST


def _written(path: Path, data: Path) -> bool:
    if path.is_symlink():
        return False
    picture = path.parent == data / _PICTURES and path.suffix == ".png" and bool(NAME.fullmatch(path.stem))
    if path.is_dir() or path.parent == data.parent or picture:
        return True
    return bool(_PART.fullmatch(path.relative_to(data).as_posix()))


def _style() -> str:
    return COLOURS + (PAGE / STYLE).read_text(encoding="utf-8")


def _json(value: Json) -> str:
    """ASCII: lone surrogates stay what they are."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks. Records from elsewhere may have them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value


def _render(values: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, trim_blocks=True, undefined=StrictUndefined
    )
    return environment.get_template("index.html.jinja").render(values)
