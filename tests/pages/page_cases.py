"""What every page for a browser is: at three widths, in light and in dark, it fits, and words are whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

WIDTHS, SCHEMES = (390, 800, 1400), ("light", "dark")
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 22, 22)"}
BROKEN = """() => {
  const broken = new Set();
  for (const cell of document.querySelectorAll('td, th')) {
    const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let text; (text = walk.nextNode());) {
      if (text.parentElement.closest('.line, details code, details .n')) continue;
      for (const word of text.data.matchAll(/[\\w.]+/g)) {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) broken.add(word[0]);
      }
    }
  }
  return [...broken];
}"""
"""The words that are cut in two inside a cell. Lines of code, and cells of all settings, may be cut anywhere."""


def every_look(tab: Any) -> Iterator[tuple[int, str]]:
    """Show the page of a tab, with all folds open, at every width in both schemes, and check it; yields each look.

    It is loaded once. axe may find minor things alone."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install 'rlanything[dev]'"
    )
    tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    for width, scheme in product(WIDTHS, SCHEMES):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=scheme)
        fits(tab, width, scheme)
        found = axe.Axe().run(tab).response["violations"]
        serious = [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] != "minor"]
        assert serious == [], (width, scheme)
        yield width, scheme


def fits(tab: Any, width: int, scheme: str) -> None:
    """No scroll bar below the page, no word cut in two, and the colours of the scheme."""
    assert tab.evaluate("document.documentElement.scrollWidth") <= width, (width, scheme)
    assert tab.evaluate(BROKEN) == [], (width, scheme)
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == PAPER[scheme], (width, scheme)
