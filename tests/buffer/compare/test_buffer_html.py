"""The pages of `diff --html`, two and three ways: task text stays text, in the file and in a real browser."""

import json
import re
from html.parser import HTMLParser

import pytest
from buffer_cases import ACCEPTED, EASIER, command, event, kitchen, record, write_house
from page_cases import every_look

from rlanything.buffer import TaskBuffer
from rlanything.buffer.views import diff
from rlanything.buffer.views.compare.html import diff_html

EVIL = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
TWO, THREE = ["full/seed-0"], ["full/seed-0@0", "full/seed-0", "full/seed-1"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    start = TaskBuffer.start(kitchen(n, "mug", "cabinet") for n in range(12))
    evil = kitchen(1, EVIL, "<b>shelf</b>")
    apple = event(start, 4, ACCEPTED, kitchen(4, "apple", "fridge"), before=0.875, after=0.25)
    one = [event(start, 1, ACCEPTED, evil, before=1.0, after=0.5, critic=EVIL), apple]
    two = [apple, event(start, 11, ACCEPTED, kitchen(11, "knife", "desk"), way=EASIER, before=0.0, after=0.5)]
    for seed, events in enumerate((one, two)):
        folder = tmp_path / f"runs/full/seed-{seed}/buffer"
        record(folder, 0, start)
        record(folder, 2, start.apply(events), events)
    return tmp_path


@pytest.fixture(params=[TWO, THREE], ids=["two", "three"])
def page(here, request, capsys):
    assert command("diff", *request.param, "--html", "page.html") == 0
    assert capsys.readouterr().out == "wrote page.html\n"
    return here / "page.html"


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_no_task_text_becomes_markup(page):
    parser = Elements()
    parser.feed(page.read_text())
    tags = [tag for tag, _ in parser.found]
    assert tags.count("script") == 2
    assert not {"img", "b", "iframe"} & set(tags)
    assert [attrs["href"] for tag, attrs in parser.found if tag == "link"] == ["data:,"]
    assert not [name for _, attrs in parser.found for name in attrs if name.startswith("on")]
    assert not re.search(r"https?://", page.read_text())


def test_names_of_buffers_and_fields_become_no_markup_either(here):
    page = diff("full/seed-0")
    page["a"]["name"] = page["b"]["name"] = EVIL
    page["concentration"] = [{**row, "field": EVIL, "value": EVIL} for row in page["concentration"]]
    parser = Elements()
    parser.feed(diff_html(page))
    assert "img" not in [tag for tag, _ in parser.found]


@pytest.mark.parametrize("names", [TWO, THREE])
@pytest.mark.parametrize(
    ("place", "message"),
    [
        (".", "--html .: is a folder; name a file"),
        ("", "--html .: is a folder; name a file"),
        ("params.yaml", "--html params.yaml: exists and is no page of `buffer diff`"),
        ("link.html", "--html link.html: is a link"),
    ],
)
def test_a_page_replaces_nothing_of_the_user(here, capsys, names, place, message):
    (here / "params.yaml").write_text("seed: 0\n")
    (here / "link.html").symlink_to(here / "params.yaml")
    assert command("diff", *names, "--html", place) == 2
    assert message in capsys.readouterr().err
    assert (here / "params.yaml").read_text() == "seed: 0\n"


def test_a_folder_that_cannot_be_written_to_is_named_alone(here, capsys):
    file = here / "params.yaml"
    file.write_text("seed: 0\n")
    assert command("diff", *TWO, "--html", "params.yaml/page.html") == 2
    assert capsys.readouterr().err.startswith(f"rlanything: {file.resolve()}: cannot be written to (")


def test_a_page_is_replaced_by_another_one(page, capsys):
    before = page.read_bytes()
    assert command("diff", "full/seed-1", "--html", "page.html") == 0
    assert page.read_bytes() != before


@pytest.fixture
def view(browser):
    """A tab that notes what went wrong in it, and what it asked for."""
    tab = browser.new_page()
    tab.problems, tab.requests = [], []
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on("console", lambda line: tab.problems.append(line.text))
    tab.on("request", lambda request: tab.requests.append(request.url))
    yield tab
    tab.close()


def slots(view):
    return view.evaluate("[...document.querySelectorAll('#rows tr')].map(row => row.dataset.slot)")


def click(view, column):
    view.click(f"#slots th:nth-child({column}) button")
    return slots(view)


@pytest.mark.integration
def test_in_a_browser_task_text_is_shown_and_never_run(page, view):
    view.goto(page.as_uri())
    assert EVIL in view.inner_text("#rows")
    assert "pwned" not in view.title()
    assert view.evaluate("[...document.querySelectorAll('script')].length") == 2
    assert view.query_selector_all("img, b, iframe") == []
    assert {url for url in view.requests if not url.startswith("data:")} == {page.as_uri()}
    assert view.problems == []


BEYOND = """() => [...document.querySelectorAll('.bar')].map(bar => bar.parentElement)
  .filter(cell => cell.scrollWidth > cell.clientWidth).length"""
"""How many bars go beyond their cell."""


@pytest.mark.integration
def test_in_a_browser_it_fits_every_screen_and_axe_finds_nothing_serious(page, view):
    view.goto(page.as_uri())
    for _ in every_look(view):
        assert view.evaluate(BEYOND) == 0


@pytest.mark.integration
def test_in_a_browser_a_phone_shows_whole_tasks_and_what_is_gone_is_struck_out(page, view):
    view.set_viewport_size({"width": 390, "height": 844})
    view.goto(page.as_uri())
    assert (
        view.evaluate("(s => s.scrollWidth - s.clientWidth)(document.querySelector('[aria-label=Slots]'))")
        == 0
    )
    struck = "getComputedStyle(document.querySelector('#rows del')).textDecorationLine"
    assert view.evaluate(struck) == "line-through", "colours alone do not reach everybody"


def test_what_chance_explains_is_in_no_rendering(here, capsys):
    assert command("diff", *TWO, "--html", "page.html") == 0
    assert command("diff", *TWO) == 0
    said = re.search(r"in no value of \d+ fields more than chance explains", capsys.readouterr().out)
    assert said is not None
    assert f"<p>{said[0]}</p>" in (here / "page.html").read_text()
    assert command("diff", *TWO, "--md") == 0
    assert f"concentrates: {said[0]}\n" in capsys.readouterr().out


@pytest.mark.integration
def test_in_a_browser_the_policy_stops_a_script_that_got_in(page, view):
    text = page.read_text()
    page.write_text(text.replace("<main>", "<main><script>document.title='pwned'</script>"))
    view.goto(page.as_uri())
    assert "pwned" not in view.title()
    assert any("Content Security Policy" in problem for problem in view.problems)


def test_rejected_and_invalid_tries_are_two_kinds_of_the_filter(tmp_path):
    write_house(tmp_path)
    text = diff_html(diff("full/seed-0", root=tmp_path))
    data = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    kinds = {row["slot"]: row["kinds"] for row in json.loads(data[1])["rows"]}
    assert kinds == {0: ["harder"], 3: ["harder"], 5: ["unchanged", "invalid"], 6: ["unchanged", "rejected"]}


@pytest.mark.integration
def test_in_a_browser_two_ways_filter_and_sort(here, view):
    assert command("diff", *TWO, "--html", "page.html") == 0
    view.goto((here / "page.html").as_uri())
    assert slots(view) == ["1", "4"]
    assert click(view, 4) == ["4", "1"]
    assert click(view, 4) == ["1", "4"]
    assert view.get_attribute("#slots th:nth-child(4)", "aria-sort") == "descending"
    view.fill("#words", "APPLE")
    assert slots(view) == ["4"]
    assert view.inner_text("#shown") == "1 of 2 slots"
    view.fill("#words", "")
    view.select_option("#kind", "harder")
    assert slots(view) == ["1", "4"]
    assert view.problems == []


@pytest.mark.integration
def test_in_a_browser_three_ways_filter_and_sort(here, view):
    assert command("diff", *THREE, "--html", "page.html") == 0
    view.goto((here / "page.html").as_uri())
    assert "12 slots: 9 unchanged in both, 1 changed alike" in view.inner_text("body")
    assert "kappa" in view.inner_text("body")
    assert slots(view) == ["1", "4", "11"]
    assert click(view, 1) == ["11", "4", "1"]
    assert click(view, 2) == ["4", "1", "11"]
    assert click(view, 7) == ["4", "11", "1"], "what was not measured comes last"
    for kind, wanted in (
        ("only in B", ["11"]),
        ("changed alike", ["4"]),
        ("A harder", ["4", "1"]),
        ("", None),
    ):
        view.select_option("#kind", kind)
        assert wanted is None or sorted(slots(view)) == sorted(wanted)
    view.fill("#words", "knife")
    assert slots(view) == ["11"]
    changed = [node.inner_text() for node in view.query_selector_all("#rows del, #rows ins")]
    assert changed == ["mug", "knife", "cabinet", "desk"]
    assert view.problems == []


@pytest.mark.integration
def test_in_a_browser_a_thousand_slots_are_filtered_at_once(here, view):
    start = TaskBuffer.start(kitchen(n, "mug", "cabinet") for n in range(1000))
    events = [event(start, n, ACCEPTED, kitchen(n, f"thing{n}", "shelf"), iteration=0) for n in range(1000)]
    record(here / "runs/large/buffer", 0, start)
    record(here / "runs/large/buffer", 1, start.apply(events), events)
    assert command("diff", "large", "--html", "page.html") == 0
    view.goto((here / "page.html").as_uri())
    assert len(slots(view)) == 1000
    started = view.evaluate("performance.now()")
    view.fill("#words", "thing777")
    assert slots(view) == ["777"]
    assert view.evaluate("performance.now()") - started < 3000
