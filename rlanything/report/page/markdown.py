"""The report's Markdown as HTML: figures inside, headings with ids, tables that scroll, and nothing that could act.

Raw HTML in the Markdown is shown as text, but for the fold that `document` writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from rlanything.pages.frame import Section
from rlanything.report.formatting import FOLDS

Rule = Callable[..., str]


def html(text: str, figure: Callable[[str, str], str]) -> tuple[Markup, str, list[Section]]:
    """The document, the id of its title, and its sections. figure: from a figure's name and caption to its HTML."""
    parser = MarkdownIt("commonmark").enable("table")
    rules = {
        "image": _image(figure), "html_block": _fold, "html_inline": _fold, "table_open": _open, "table_close": _close,
    }  # fmt: skip
    for name, rule in rules.items():
        parser.add_render_rule(name, rule)
    tokens = parser.parse(text)
    headings = list(_identified(tokens))
    top = next((section.id for tag, section in headings if tag == "h1"), "")
    _columns(tokens)
    _figures(tokens)
    body = Markup(parser.renderer.render(tokens, parser.options, {}))
    return body, top, [section for tag, section in headings if tag == "h2"]


def _identified(tokens: Sequence[Token]) -> Iterator[tuple[str, Section]]:
    """Give every heading an id; yields the tag and the section of each."""
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _id(inside.content))
            yield token.tag, Section(_id(inside.content), inside.content)


def _id(title: str) -> str:
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def _columns(tokens: Sequence[Token]) -> None:
    """Columns of numbers get a class in place of a style, which the page's policy would refuse."""
    for token in tokens:
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if token.attrs.pop("style", "") == "text-align:right":
            token.attrSet("class", "n")


def _figures(tokens: Sequence[Token]) -> None:
    """A figure stands in no paragraph."""
    for before, inside, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        children = inside.children or []
        if len(children) == 1 and children[0].type == "image":
            before.hidden = after.hidden = True


def _image(figure: Callable[[str, str], str]) -> Rule:
    def rule(_: Any, tokens: Sequence[Token], place: int, *rest: Any) -> str:
        return figure(PurePosixPath(str(tokens[place].attrs["src"])).stem, tokens[place].content)

    return rule


def _fold(_: Any, tokens: Sequence[Token], place: int, *rest: Any) -> str:
    content = tokens[place].content
    return content if content.strip() in FOLDS else str(escape(content))


def _open(*_: Any) -> str:
    return '<div class="wide" tabindex="0" role="group" aria-label="Table"><table>\n'


def _close(*_: Any) -> str:
    return "</table></div>\n"
