"""A document with its figures as one page, or as a folder with the figures beside it; where they may be written."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from rlanything.files.outputs import Output, output
from rlanything.report.drawn.canvas import Chart
from rlanything.report.figures import KINDS, draw
from rlanything.report.page.page import framed

FIGURE = re.compile(r"!\[([^]]*)\]\(figures/([\w.-]{1,80})\.png\)\n\n")
"""A figure in a document: its caption and its name."""
COMPARISON, RUN = "Comparison", "Run"
"""How the titles of these pages begin."""
PAGE = "index.html"
"""The page in a folder."""
_LINK = re.compile(rf'href="(figures/[\w.-]{{1,80}}\.(?:{"|".join(KINDS)}))"')
"""A figure's file, as the page in the folder links to it."""
_STARTS = tuple(
    f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}'.encode()
    for title in (COMPARISON, RUN)
)


def page_of(title: str, text: str, charts: Iterable[Chart]) -> str:
    """The page of a document. charts: those that it may show; others are not drawn, and what has none is left out."""
    files = _drawn(text, charts, ("svg",))
    return framed(_with(text, files), files, title, kinds=())


def folder_of(title: str, text: str, charts: Iterable[Chart]) -> dict[str, bytes]:
    """The files of a folder by their path in it: the page, and its figures in every form. charts: as of `page_of`."""
    files = _drawn(text, charts, KINDS)
    page = framed(_with(text, files), files, title)
    return {
        PAGE: page.encode("utf-8", "backslashreplace"),
        **{f"figures/{name}": x for name, x in files.items()},
    }


def _drawn(text: str, charts: Iterable[Chart], kinds: Collection[str]) -> dict[str, bytes]:
    """Name -> content of the figures that a document shows."""
    wanted = {name for _, name in FIGURE.findall(text)}
    return dict(draw((chart for chart in charts if chart.name in wanted), kinds))


def _with(text: str, files: Mapping[str, bytes]) -> str:
    """The document without the figures that are not among the files."""
    return FIGURE.sub(lambda one: one[0] if f"{one[2]}.svg" in files else "", text)


def free(file: Path) -> Output:
    """The place of a page, for `output.write_text`. Raises `ConfigError` for one that holds something else."""
    return output(file, _problem)


def free_folder(folder: Path) -> Output:
    """The place of a folder, for `output.folder`. Raises `ConfigError` for one that holds something else."""
    return output(folder, _folder_problem)


def _folder_problem(folder: Path) -> str:
    if not folder.is_dir():
        return "is a file, not a folder; without a / at its end it is a page"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if not found or (PAGE in found and not _problem(folder / PAGE) and found <= _files(folder / PAGE)):
        return ""
    return "holds other files than a page of a run or of a comparison with its figures; name another folder"


def _files(page: Path) -> set[str]:
    """What a folder of these commands has: its page, and the figures that the page links to."""
    return {PAGE, *_LINK.findall(page.read_text(encoding="utf-8", errors="replace"))}


def _problem(file: Path) -> str:
    if file.is_dir():
        return "is a folder, not a file; with a / at its end it is a folder with the figures as files"
    with file.open("rb") as opened:
        found = opened.read(max(map(len, _STARTS)))
    if found.startswith(_STARTS):
        return ""
    return "exists and is no page of a run or of a comparison; name another file"
