"""The page of `diff --html`: task text stays text, in the file and in a real browser."""

import re
import shutil
from html.parser import HTMLParser

import pytest
from buffer_cases import ACCEPTED, command, event, kitchen, record

from rlanything.buffer import TaskBuffer

EVIL = "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"


@pytest.fixture
def page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    start = TaskBuffer.start(kitchen(n, "mug", "cabinet") for n in range(6))
    evil = kitchen(1, EVIL, "<b>shelf</b>")
    events = [
        event(start, 1, ACCEPTED, evil, before=1.0, after=0.5, critic=EVIL),
        event(start, 4, ACCEPTED, kitchen(4, "apple", "fridge"), before=0.875, after=0.25),
    ]
    record(tmp_path / "runs/full/seed-0/buffer", 0, start)
    record(tmp_path / "runs/full/seed-0/buffer", 2, start.apply(events), events)
    assert command("diff", "full/seed-0", "--html", "page.html") == 0
    assert capsys.readouterr().out == "wrote page.html\n"
    return tmp_path / "page.html"


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
    assert not {"img", "b", "iframe", "link"} & set(tags)
    assert not [name for _, attrs in parser.found for name in attrs if name.startswith("on")]
    assert not re.search(r"https?://", page.read_text())


@pytest.mark.parametrize(("words", "message"), [(["no/page.html"], "No such file"), (["."], "directory")])
def test_a_page_that_cannot_be_written(page, capsys, words, message):
    assert command("diff", "full/seed-0", "--html", *words) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs: pip install playwright")
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("needs a chromium on the PATH (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.integration
def test_in_a_browser(page, browser):
    view = browser.new_page()
    problems = []
    view.on("pageerror", lambda error: problems.append(str(error)))
    view.on("console", lambda line: problems.append(line.text))
    view.goto(page.as_uri())

    def slots():
        return [row.get_attribute("data-slot") for row in view.query_selector_all("#rows tr")]

    assert slots() == ["1", "4"]
    assert EVIL in view.inner_text("#rows")
    assert "pwned" not in view.title()
    view.click("#slots th:nth-child(4) button")
    assert slots() == ["4", "1"]
    view.click("#slots th:nth-child(4) button")
    assert slots() == ["1", "4"]
    view.fill("#words", "APPLE")
    assert slots() == ["4"]
    view.fill("#words", "")
    view.select_option("#kind", "harder")
    assert slots() == ["1", "4"]
    assert problems == []
