"""The page of a sweep in a browser, and its figures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_cases import SCHEMES, fits
from sweep_cases import BAND, LAMBDA, declared, make, play

from rlanything.sweep.results.document import about
from rlanything.sweep.results.matplotlib_figures import FIGURE
from rlanything.sweep.results.page import page_html
from rlanything.sweep.results.plotly_figures import PLOTS
from rlanything.sweep.results.views import Views, views


def test_every_parameter_has_its_slice_however_many_there_are(tmp_path):
    space = {
        "signals.lambda": LAMBDA, "band": BAND, "adaptation.acceptance": ["strict", "paired"], "judge.m": [1, 3, 5]
    }  # fmt: skip
    board = make(declared(space=space, sampler="random", budget={"trials": 6}, confirm=0), tmp_path)
    play(board)
    found = views(board, "case")
    assert len(found.varied) == 5
    names = [axis.get_xlabel() for axis in FIGURE["slices"](found).axes]
    assert [name for name in names if name] == found.varied
    shown = PLOTS["slices"](found)["layout"]
    assert {shown[f"xaxis{n}"]["title"]["text"] for n in ("", 2, 3, 4, 5)} == set(found.varied)


@pytest.mark.long
def test_chromium_shows_the_page_and_refuses_nothing(published, browser):
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((published / "page.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.figure .main-svg').length >= 7")
    figures = page.eval_on_selector_all(".figure", "all => all.map(f => f.id)")
    page.close()
    assert said == []
    assert set(figures) == {"history", "front", "slices", "contour", "importances", "adaptation", "fresh"}


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (800, "light"), (1400, "dark")])
def test_the_page_fits_the_screen(published, browser, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.goto((published / "page.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.figure .main-svg').length >= 7")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ends = page.eval_on_selector_all(
        ".figure .main-svg", "all => all.map(f => f.getBoundingClientRect().right)"
    )
    assert max(ends) <= width
    panels = page.eval_on_selector_all(
        "#slices .xy, #slices .x2y2, #slices .x3y3",
        "all => all.map(panel => panel.getBoundingClientRect().width)",
    )
    assert min(panels) > 150
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        fits(page, width, scheme)
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1400])
def test_axe_finds_nothing_serious_in_the_page(published, browser, width, scheme):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install 'rlanything[dev]'"
    )
    page = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.goto((published / "page.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.figure .main-svg').length >= 7")
    found = axe.Axe().run(page).response["violations"]
    page.close()
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found if rule["impact"] != "minor"] == []


EVIL = "<img src=x onerror=\"document.title='pwned'\"></script><script>document.title='pwned'</script>"


def hostile(found: Views) -> Views:
    """The same with a stranger's words wherever a page shows words that it was given."""
    points = [
        replace(
            p,
            label=EVIL if p.number == 2 else p.label,
            sets={EVIL: p.number, "k": EVIL + p.name},
        )
        for p in found.points
    ]
    return replace(
        found, name=EVIL, objectives=(EVIL, EVIL), points=tuple(points), logarithmic=frozenset(),
        importances={EVIL: next(iter(found.importances.values()))},
        contours=tuple(replace(one, keys=(EVIL, EVIL), trials=()) for one in found.contours),
        fresh=tuple(replace(one, baseline=EVIL) for one in found.fresh),
    )  # fmt: skip


@pytest.mark.long
def test_a_stranger_s_words_stay_words_in_a_browser(board, browser, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page_html(board, EVIL, hostile(views(board, "case"))), encoding="utf-8")
    said: list[str] = []
    page = browser.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.figure .main-svg').length >= 7")
    page.hover("#history .points path >> nth=2", force=True)
    assert page.title() == f"Sweep {EVIL}"
    assert EVIL in page.inner_text("body")
    assert page.query_selector_all("img[src=x], [onerror]") == []
    page.close()
    assert said == []


@pytest.mark.parametrize(("scheme", "ink"), [("light", "rgb(27, 27, 27)"), ("dark", "rgb(230, 230, 230)")])
def test_figures_have_the_ink_of_the_page(published, browser, scheme, ink):
    page = browser.new_page(color_scheme="dark" if scheme == "light" else "light")
    page.goto((published / "page.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.figure .main-svg').length >= 7")
    page.emulate_media(color_scheme=scheme)
    fill = "getComputedStyle(document.querySelector('#history .xtick text')).fill"
    for _ in range(100):  # the page forbids the evaluation of texts, with which Playwright would wait
        if page.evaluate(fill) == ink:
            break
        page.wait_for_timeout(50)
    assert page.evaluate(fill) == ink
    assert page.evaluate("getComputedStyle(document.body).color") == ink
    page.close()


def test_the_papers_point_and_the_default_have_shapes_of_their_own(board):
    found = views(board, "case")
    shapes = {p.label: "circle" for p in found.finished} | {"paper": "diamond", "default": "square"}
    wanted = [shapes[p.label] for p in found.finished]
    assert {"circle", "diamond", "square"} == set(wanted)
    assert PLOTS["history"](found)["data"][0]["marker"]["symbol"] == wanted
    open_or_not = PLOTS["front"](found)["data"][0]["marker"]["symbol"]
    assert [symbol.removesuffix("-open") for symbol in open_or_not] == wanted
    (axis,) = FIGURE["history"](found).axes
    assert {"o", "D", "s"} <= {line.get_marker() for line in axis.lines}
    assert "Orange diamond: the paper's point; green square: the default." in about(board.sweep)


def test_intervals_of_learning_curves_are_said_to_be_over_seeds_alone():
    of_curves = about(declared(confirm=0, last_evaluations=2))
    assert "intervals over seeds, in percent; differences in points, paired by seed. " in of_curves
    assert "intervals over seeds and tasks, in percent" in about(declared(confirm=0))


def test_a_key_that_is_declared_so_has_a_log_axis_however_narrow(tmp_path):
    narrow = {"low": 0.5, "high": 2.0, "log": True}
    board = make(
        declared(space={"signals.lambda": narrow, "judge.m": [1, 3]}, budget={"trials": 6}), tmp_path
    )
    play(board)
    found = views(board, "case")
    assert found.logarithmic == {"signals.lambda"}
    scales = {axis.get_xlabel(): axis.get_xscale() for axis in FIGURE["slices"](found).axes}
    assert scales == {"signals.lambda": "log", "judge.m": "linear"}
    layout = PLOTS["slices"](found)["layout"]
    axes = {a["title"]["text"]: a.get("type") for k, a in layout.items() if k.startswith("xaxis")}
    assert axes == {"signals.lambda": "log", "judge.m": None}


def test_words_from_outside_stay_words_in_the_page(published):
    from rlanything.sweep.results.page import _json
    from rlanything.sweep.results.plotly_figures import escape_tags

    assert "<script>" not in _json({"x": "</script><script>alert(1)</script>"})
    assert escape_tags("<b>bold</b> & more") == "&lt;b&gt;bold&lt;/b&gt; &amp; more"
    text = (published / "page.html").read_text()
    assert text.count("</script>") == 3
    assert 'http-equiv="Content-Security-Policy" content="default-src \'none\'' in text
