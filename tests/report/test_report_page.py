"""report/index.html in a real browser: it renders, links, prints, works by keyboard, and hostile texts stay texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_cases import every_look
from report_cases import config, evaluation, write_evaluation

from rlanything.report.page.page import framed
from rlanything.stages import report

EVIL = (
    "<script>document.title='pwned'<!--<img src=x onerror=\"document.title='pwned'\">"
    "[a](javascript:alert(1))\x1b\u202e"
)
MOST_BYTES = 2_000_000

pytestmark = pytest.mark.integration


@pytest.fixture
def made(reported) -> Path:
    return reported / "report" / "index.html"


def test_it_renders_and_asks_for_nothing(made, tab):
    tab.goto(made.as_uri())
    assert tab.inner_text("h1") == "Report"
    assert tab.inner_text("h1 + p").startswith("full: Accuracy in-domain 63.4 [49.1, 77.8] percent, +25.5")
    assert tab.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert tab.evaluate("document.images.length") == len(list((made.parent / "figures").glob("*.svg")))
    assert tab.query_selector_all("script") == []
    assert {url for url in tab.requests if not url.startswith("data:")} == {made.as_uri()}
    assert tab.problems == []
    assert made.stat().st_size < MOST_BYTES


def test_it_says_what_report_md_says(made, tab):
    tab.goto(made.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    shown = " ".join(tab.inner_text("main").split())
    document = (made.parent / "report.md").read_text()
    for line in re.findall(r"^- (.*)$", document, re.MULTILINE):
        said = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line).replace("`", "").replace("*", "")
        assert " ".join(said.split()) in shown
    headings = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    assert [node.inner_text() for node in tab.query_selector_all("h1, h2, h3")] == headings


def test_every_link_leads_somewhere(made, tab):
    tab.goto(made.as_uri())
    links = tab.evaluate("[...document.querySelectorAll('a')].map(link => link.getAttribute('href'))")
    assert len(links) > 50
    for link in set(links):
        inside = link.startswith("#")
        assert tab.query_selector(f"[id='{link[1:]}']") if inside else (made.parent / link).exists(), link


@pytest.mark.long
def test_it_fits_and_axe_finds_nothing_serious(made, tab):
    tab.goto(made.as_uri())
    assert len(list(every_look(tab))) == 6


def test_the_keyboard_reaches_everything(made, tab):
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(made.as_uri())
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "To the result"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "wide", "a table that is wider than the screen"
    before = tab.evaluate("document.activeElement.scrollLeft")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_function("before => document.activeElement.scrollLeft > before", arg=before)
    tab.focus("summary")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.querySelector('details').open")


def test_it_prints_light_and_whole(made, tab):
    tab.set_viewport_size({"width": 718, "height": 1000})  # the text of a sheet of A4, in pixels
    tab.emulate_media(media="print", color_scheme="dark")
    tab.goto(made.as_uri())
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert tab.evaluate("getComputedStyle(document.images[0]).filter") == "none"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 718


@pytest.mark.long
def test_hostile_texts_in_every_field_stay_texts(tmp_path, drawn_as_svg, tab):
    # Names are names of files, so those with hidden characters or a slash are refused before.
    name, judge = "<img src=x onerror=\"document.title='pwned'\">", "<img src=x onerror=alert(1)>"
    judges = {judge: {"path": EVIL, "votes": 3}}
    arms = {name: {"step_votes": True, "train_reward": True, "adapt": False}}
    hostile = config(scale=EVIL, arms=arms, evaluate={"labels": "judge", "judges": judges})
    data = evaluation("full") | {"arm": name}
    for found in data["seeds"].values():
        found["labels"] = {judge: {"rm_process": found["rm_process"], "left_out": {"labelled": 9, EVIL: 1}}}
    write_evaluation(tmp_path, evaluation("base"))
    write_evaluation(tmp_path, data)
    report.write_report(hostile, tmp_path)
    tab.goto((tmp_path / "report" / "index.html").as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    shown = tab.inner_text("body")
    assert "<script>document.title='pwned'<!--<img src=x" in shown
    assert shown.count(name[:40]) > 10
    assert judge in shown
    assert not set("\x1b\u202e") & set(shown)
    assert tab.query_selector_all("script, iframe, img:not([src^='data:image/svg+xml;base64,'])") == []
    assert tab.query_selector_all("a[href^=javascript]") == []
    assert tab.title() == "Report"
    assert tab.problems == []


def test_html_in_the_document_stays_text():
    table = f"| a |\n| :-- |\n| {EVIL} |"
    page = framed(
        f"# Report\n\n{EVIL}\n\n<div onclick='x'>\n\n{table}\n\n<details><summary>All</summary>\n", {}
    )
    assert "<div onclick" not in page
    assert "<summary>All" not in page
    assert page.count("<script") == page.count("<img") == page.count('href="javascript') == 0
    assert not set("\x1b\u202e") & set(page)


def test_the_policy_stops_a_script_that_got_in(made, tmp_path, tab):
    file = tmp_path / "index.html"
    file.write_text(made.read_text().replace("<main>", "<main><script>document.title='pwned'</script>"))
    tab.goto(file.as_uri())
    tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=`pwned`\">')"
    )
    tab.wait_for_timeout(200)
    assert tab.title() == "Report"
    assert any("Content Security Policy" in problem for problem in tab.problems)
