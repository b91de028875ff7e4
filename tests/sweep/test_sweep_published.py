"""What a sweep publishes: the table, every trial, the whole study, figures and the page. Nobody else's is replaced."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from optuna.trial import TrialState
from page_cases import SCHEMES, fits
from sweep_cases import BAND, LAMBDA, declared, make, play

from rlanything.sweep.results.comparisons import differences
from rlanything.sweep.results.document import ABOUT, LEVEL, sentences, trials
from rlanything.sweep.results.matplotlib_figures import FIGURE, draw
from rlanything.sweep.results.page import page_html
from rlanything.sweep.results.plotly_figures import PLOTS
from rlanything.sweep.results.publish import publish, replaces_nothing_else, stamp
from rlanything.sweep.results.table import summary, table
from rlanything.sweep.results.views import Views, views


@pytest.fixture(scope="module")
def published(board, tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    file = root / "case.yaml"
    file.write_text("space: {}\n")
    (root / "sweeps" / "case").mkdir(parents=True)
    (root / "sweeps" / "case" / "stale.txt").write_text("of an earlier run")
    publish(board, file, root, stamp(root, "case"))
    return root / "sweeps" / "case"


def test_the_table_is_the_same_as_parquet_and_csv(published):
    frame = pl.read_parquet(published / "trials.parquet")
    assert frame.height == 12
    assert frame["trial"].to_list() == list(range(12))
    assert frame["label"].to_list()[:3] == ["paper", "default", None]
    read = pl.read_csv(published / "trials.csv", infer_schema_length=None)
    assert read.columns == frame.columns
    name = "full.in_domain"
    assert (frame[f"{name}.low"] <= frame[name]).all()
    assert read[name].to_list() == frame[name].to_list()


def test_what_is_published_replaces_what_was_there(published):
    names = {p.name for p in published.iterdir()}
    assert names == {
        "best.yaml", "figures", "fresh", "fresh.json", "page.html", "report.md", "study.journal", "summary.json",
        "sweep.yaml", "trials", "trials.csv", "trials.parquet",
    }  # fmt: skip
    assert [p.name for p in published.parent.iterdir()] == ["case"]


def test_every_trial_keeps_its_parameters_metrics_and_buffer(published, board):
    for number in range(12):
        folder = published / "trials" / f"{number:04d}"
        assert json.loads((folder / "params.yaml").read_text()) == board.sets(number)
        assert (folder / "evaluation" / "full.json").is_file()
        for seed in range(3):
            run = folder / "runs" / "full" / f"seed-{seed}"
            assert (run / "buffer" / "events.jsonl").is_file()
            assert (run / "metrics.jsonl").is_file()
    assert json.loads((published / "best.yaml").read_text()) == board.sets(board.best().number)


def test_the_published_study_is_the_whole_study(published, board):
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    storage = JournalStorage(JournalFileBackend(str(published / "study.journal")))
    (name,) = optuna.get_all_study_names(storage)
    copied = optuna.load_study(study_name=name, storage=storage).trials
    assert [(t.values, t.params, t.user_attrs) for t in copied] == [
        (t.values, t.params, t.user_attrs) for t in board.study.trials()
    ]


def test_the_summary_has_the_best_and_the_baselines(board):
    found = summary(board)
    assert found["trials"] == {"complete": 12}
    assert found["best"]["trial"] == board.best().number
    assert found["paper"]["trial"] == 0
    assert found["default"]["in_domain"]["mean"] == board.study.trials()[1].values[0]


def test_every_figure_of_the_report_is_there(published):
    text = (published / "report.md").read_text()
    for name in ("history", "front", "slices", "contour", "importances", "adaptation", "fresh"):
        assert f"(figures/{name}.png)" in text
        assert (published / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (published / "figures" / f"{name}.svg").is_file()


def test_crashed_and_pruned_trials_are_shown_and_left_out_of_the_numbers(tmp_path):
    board = make(declared(budget={"trials": 5}), tmp_path)
    for state in (TrialState.FAIL, TrialState.PRUNED):
        for _ in range(2):
            board.study.ask()
        number = len(board.study.trials()) - 1
        if state == TrialState.FAIL:
            board.study.note(number, error="boom\nOSError: <b>bad</b> | wire 42")
        board.study.tell(number, None, state)
    found = views(board, "case")
    assert found.best is None
    assert found.finished == []
    assert sentences(found) == ["No trial has a result."]
    frame = table(board)
    assert frame["state"].to_list() == ["running", "fail", "running", "pruned"]
    assert "bad" in frame["error"][1]


def test_what_only_the_papers_point_sets_is_in_the_table(tmp_path):
    """The space has no lambda: without its column the paper's row would look like the default's."""
    board = make(declared(space={"judge.m": [3, 5]}, budget={"trials": 3}, confirm=0), tmp_path)
    play(board, truth=lambda sets: 0.5)
    found = views(board, "case")
    assert found.varied == (["judge.m"] if board.sets(2)["judge.m"] == 5 else [])
    head, rows = trials(found, str)
    column = [row[head.index("signals.lambda")] for row in rows]
    assert column == ["1.0", "–", "–"]
    assert set(dict(draw(found))) >= {"history.png"}


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


def test_many_trials_do_not_drown_what_is_certain(tmp_path):
    """Times the trials (Holm), the p of a great difference stays below the level."""
    board = make(declared(confirm=0, sampler="qmc", seeds=6, budget={"trials": 20}), tmp_path)
    play(board, truth=lambda sets: 0.9 if sets["signals.lambda"] < 0.75 else 0.1)
    p = {n: d.p for n, d in differences(board).items() if board.sets(n)["signals.lambda"] > 0.75}
    assert len(p) > 5
    assert max(p.values()) < LEVEL


def test_a_pruned_trial_says_how_far_it_came(tmp_path):
    board = make(declared(budget={"trials": 3}, pruner="median"), tmp_path)
    for _ in range(3):
        trial = board.study.ask()
    board.study.report(trial.number, [0.1, 0.2])
    board.study.tell(trial.number, None, TrialState.PRUNED)
    assert table(board)["points"].to_list() == [None, None, 2]
    assert views(board, "case").points[2].state == "pruned after 2 points"
    assert board.best() is None


def test_two_workers_publish_once_and_a_later_start_publishes_again(tmp_path):
    board = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    play(board)
    file, target = tmp_path / "case.yaml", tmp_path / "sweeps" / "case"
    file.write_text("space: {}\n")
    publish(board, file, tmp_path, None)
    (target / "report.md").write_text("of older code")
    published = stamp(tmp_path, "case")
    publish(board, file, tmp_path, None)  # the second of two that began before there was anything
    assert stamp(tmp_path, "case") == published
    publish(board, file, tmp_path, published)
    assert "older" not in (target / "report.md").read_text()
    (target / "summary.json").write_text('{"trials": {"complete": 1}}')  # another worker had a smaller budget
    publish(board, file, tmp_path, None)
    assert json.loads((target / "summary.json").read_text())["trials"] == {"complete": 2}


def test_a_study_that_ended_early_takes_no_other_studys_results_away(tmp_path):
    board = make(declared(confirm=0, budget={"trials": 2}), tmp_path / "study")
    file, target = tmp_path / "case.yaml", tmp_path / "sweeps" / "case"
    file.write_text("space: {}\n")
    (board.folder / "key.json").write_text('{"config": 1}')
    assert replaces_nothing_else(board, tmp_path, "case")
    publish(board, file, tmp_path, None)
    assert replaces_nothing_else(board, tmp_path, "case")
    (target / "key.json").write_text('{"config": 2}')
    assert not replaces_nothing_else(board, tmp_path, "case")
    (target / "key.json").unlink()
    assert not replaces_nothing_else(board, tmp_path, "case")


def test_the_same_point_twice_is_trained_once(tmp_path):
    sweep = declared(sampler="random", space={"judge.m": [1, 3]}, budget={"trials": 4})
    board = make(sweep, tmp_path)
    first = board.study.ask()
    board.study.tell(first.number, [0.5], TrialState.COMPLETE)
    later = [board.study.ask() for _ in range(3)]
    twins = [t for t in later if t.user_attrs["sets"] == first.user_attrs["sets"]]
    assert [board.same_point(t.number).number for t in twins] == [0] * len(twins)
    default = later[0].number
    assert board.same_point(default) is None
    waits = [t for t in later[1:] if t.user_attrs["sets"] == later[0].user_attrs["sets"]]
    assert [board.same_point(t.number).number for t in waits] == [default] * len(waits)
    assert waits


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
    assert "Orange diamond: the paper's point; green square: the default." in ABOUT


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
