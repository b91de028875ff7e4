"""The frame of a page: its style, its sections, and a policy that lets the browser run the page's own scripts only.

Everything that a template prints is escaped, and its characters that cannot be seen are shown as numbers.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rlanything.core.look import COLOURS
from rlanything.core.printable import safe

FOLDER = Path(__file__).with_name("templates")
FRAME, FIGURE, STYLE = "frame.html.jinja", "figure.html.jinja", "page.css"


@dataclass(frozen=True)
class Section:
    """A section of a page: its id, by which links find it, and its title."""

    id: str
    title: str


def page(
    values: Mapping[str, Any],
    sections: Sequence[Section],
    template: Path = FOLDER / FRAME,
    *,
    style: str = "",
    scripts: Sequence[str] = (),
    inline: bool = False,
) -> str:
    """The whole page; equal values give equal text.

    Args:
        values: what the template needs: `title`, and `body` where it is the frame itself.
        sections: for the list beside the page.
        template: extends the frame.
        style: rules beside those of all pages.
        scripts: those that may run.
        inline: whether elements may have styles of their own, as a library may set them.
    """
    whole = COLOURS + (FOLDER / STYLE).read_text(encoding="utf-8") + style
    return (
        _templates(template.parent)
        .get_template(template.name)
        .render(
            {"start": sections[0].id if sections else "", **values},
            headings=sections,
            style=Markup(whole),
            policy=policy(whole, scripts, inline),
            scripts=[Markup(script) for script in scripts],
        )
    )


def figure(name: str, caption: str, svg: bytes, kinds: Sequence[str] = ()) -> str:
    """A figure inside a page. kinds: endings of its files in `figures/`, which it links to."""
    data = base64.b64encode(svg).decode()
    template = _templates(FOLDER).get_template(FIGURE)
    return template.render(name=name, caption=caption, data=data, kinds=kinds)


def _templates(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader([folder, FOLDER]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_visible,
    )


def _visible(value: object) -> object:
    return safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def policy(style: str, scripts: Sequence[str], inline: bool = False) -> Markup:
    """What the browser may do. A script that is not one of the page's own has another hash and does not run.

    style, scripts: all of the page, as they stand in it. inline: whether elements may have styles of their own."""
    styles = "'unsafe-inline'" if inline else _digest(style)
    images = "data: blob:" if inline else "data:"
    run = f"script-src {' '.join(map(_digest, scripts))}; " if scripts else ""
    return Markup(
        f"default-src 'none'; style-src {styles}; img-src {images}; {run}base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
