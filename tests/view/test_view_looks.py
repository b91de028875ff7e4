"""The page at three widths, in light and dark."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("width", [390, 800, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_at_every_width_in_light_and_dark(site, tab, width, scheme, look, everything):
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    for address in ("votes/#i=0&s=3&q=mug&f=failed", "votes/#i=0&s=5&r=1", "tests/#i=0&s=3"):
        look(f"{site}/{address}")
        everything()
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate(CONTRAST) == []
    dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 22)"
    assert dark == (scheme == "dark")


def test_controls_have_names(site, tab, look):
    look(f"{site}/votes/")
    for name in ("Find", "Iteration", "|advantage| at least", "failed", "disputed"):
        assert tab.get_by_label(name, exact=True).count() == 1
    for role in ("banner", "navigation", "main", "search"):
        assert tab.get_by_role(role).count() == 1
    assert tab.get_attribute("html", "lang") == "en"
