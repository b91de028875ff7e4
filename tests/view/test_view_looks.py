"""The page at three widths, in light and dark."""

from __future__ import annotations

from itertools import product

import pytest
from page_cases import SCHEMES, WIDTHS, fits
from view_cases import made, steps_run

pytestmark = pytest.mark.integration


CONTRAST = """() => {
  const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const found = colour(getComputedStyle(node).backgroundColor);
      if (found.length === 3) return found;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(colour(style.color)), light(behind(node))];
    if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5 || style.opacity !== '1') low.add(node.outerHTML);
  }
  return [...low];
}"""
"""The texts with less contrast than WCAG 2 asks for (AA, 4.5)."""


PLACES = (
    *("votes/#i=0&s=3&q=mug&f=failed", "votes/#i=0&s=5&r=1", "tests/#i=0&s=3"),
    *("noted/#i=0&s=3&r=0&c=1.0.3.0.2&h=length_2_3", "tests/#i=0&s=3&c=0.0.3.0.1"),
)


@pytest.fixture(scope="module")
def pages(site, server) -> str:
    """Those of `site`, and one of two runs with a note."""
    note = {"iteration": 0, "slot": 3, "rewrite": 0, "rollout": 0, "step": 1, "text": "odd"}
    made(server[0] / "noted", steps_run(), against=steps_run(), notes=[note])
    return site


@pytest.mark.parametrize("address", PLACES)
def test_it_can_be_read_at_every_width_in_light_and_dark(pages, tab, address, look, everything):
    look(f"{pages}/{address}")
    everything()
    for width, scheme in product(WIDTHS, SCHEMES):
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(color_scheme=scheme)
        fits(tab, width, scheme)
        assert tab.evaluate(CONTRAST) == [], (width, scheme)


def serious(tab) -> list[tuple[str, str]]:
    """What axe finds on the page as it is, but for minor things: its rule, and the first element."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install 'rlanything[dev]'"
    )
    found = axe.Axe().run(tab).response["violations"]
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] != "minor"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("address", PLACES)
def test_axe_finds_nothing_serious(pages, tab, width, scheme, address, look, everything):
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    look(f"{pages}/{address}")
    everything()
    assert serious(tab) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_the_table_of_keys(pages, tab, scheme, look):
    tab.emulate_media(color_scheme=scheme)
    look(f"{pages}/{PLACES[0]}")
    tab.click("#help")
    assert tab.locator("dialog#keys[open]").count() == 1
    assert serious(tab) == []


def test_controls_have_names(site, tab, look):
    look(f"{site}/votes/")
    for name in (
        "Find",
        "Iteration",
        "|advantage| at least",
        "failed",
        "disputed",
        "with notes",
        "Compare with",
    ):
        assert tab.get_by_label(name, exact=True).count() == 1
    for role in ("banner", "navigation", "main", "search"):
        assert tab.get_by_role(role).count() == 1
    assert tab.get_attribute("html", "lang") == "en"
