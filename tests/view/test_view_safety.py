"""What models wrote stays text, nothing is loaded from elsewhere, and what is missing is named: in a real browser."""

from __future__ import annotations

import json

import pytest
from view_cases import NOTES, made, programs_run, steps_run

EVIL = (
    "</script><script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
    "\x1b[31m\u202e\r\ud800"
)

NOTE = {"iteration": 0, "slot": 3, "rewrite": 0, "rollout": 1, "step": None}

pytestmark = pytest.mark.integration


def test_nothing_is_requested_from_elsewhere(site, tab, look, settled):
    look(f"{site}/votes/")
    tab.fill("#words", "zebra")
    settled("document.getElementById('shown').textContent.startsWith('1 of')")
    own = [url for url in tab.requests if url.startswith((f"{site}/votes/", "data:,", "about:blank"))]
    assert tab.requests == own
    assert f"{site}/votes/data/iterations/1.json.gz" in own
    assert f"{site}/votes/data/iterations/0.json.gz" not in own, "an iteration loads when it is opened"
    assert not [url for url in own if "/tokens/" in url], "tokens load when they are asked for"


def evil(text: str) -> str:
    return EVIL + text


@pytest.mark.long
@pytest.mark.parametrize("single", [False, True], ids=["folder", "single"])
@pytest.mark.parametrize("run", [steps_run, programs_run])
def test_hostile_texts_in_every_field_stay_texts(
    server, tab, run, single, look, settled, everything, tmp_path
):
    folder, url = server
    name = f"evil-{run.__name__}-{single}.html"
    about = dict.fromkeys(("run", "identity", "state", "version"), EVIL)
    made(
        folder / name,
        run(evil),
        evil,
        single=single,
        against=run(evil),
        notes=[{**NOTE, "text": EVIL}],
        **about,
    )
    mine = {"format": NOTES, "run": EVIL, "identity": EVIL, "notes": [{**NOTE, "step": 0, "text": EVIL}]}
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    at = (folder / name).as_uri() if single else f"{url}/{name}/"
    look(at)
    tab.set_input_files("#import", str(tmp_path / "mine.json"))
    settled("document.getElementById('noted').textContent === ' (2)'")
    beside = (
        "#i=0&s=3&r=1",
        "#i=0&s=3&r=1&c=1.0.3.0.0&f=noted&h=length_1_99",
        "#g=1&i=0&s=3&r=0&c=0.0.3.0.1",
    )
    places = ("", *beside, "#i=0&s=5&r=1", "#i=0&s=5&r=0", "#i=1&s=3&p=1")
    for place in places if run is steps_run else places[:4]:
        look(f"{at}{place}")
        shown = everything()
        assert "</script><script>document.title='pwned'</script><img src=x" in shown
        assert "␛[31m\\u{202e}␍\\u{d800}" in shown, "what cannot be seen is shown as a symbol"
        assert not set("\x1b\u202e\r") & set(shown)
        assert tab.query_selector_all("img, iframe, b > script, #columns script, #folds script") == []
        assert tab.evaluate("document.title") != "pwned"
    tab.fill("#words", EVIL.encode("utf-8", "replace").decode())
    settled("!document.getElementById('shown').textContent.startsWith('0 of')")
    assert tab.problems == []


@pytest.mark.parametrize("single", [False, True], ids=["folder", "single"])
def test_the_policy_stops_a_script_that_got_in(server, tab, single, look):
    folder, url = server
    name = f"in-{single}.html"
    made(folder / name, steps_run(), single=single)
    file = folder / name if single else folder / name / "index.html"
    file.write_text(file.read_text().replace("<main>", "<main><script>document.title='pwned'</script>"))
    look(file.as_uri() if single else f"{url}/{name}/")
    tab.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=`pwned`\">')"
    )
    tab.wait_for_timeout(200)
    assert tab.title() != "pwned"
    assert any("Content Security Policy" in problem for problem in tab.problems)


def test_a_single_file_opens_without_a_server(tmp_path, tab, look, counted):
    made(tmp_path / "one.html", steps_run(), single=True)
    look((tmp_path / "one.html").as_uri() + "#i=0&s=3&r=2")
    tab.fill("#words", "zebra")
    counted("1 of 7")
    tab.locator("#step-0 .tokens summary").click()
    tab.wait_for_selector("#step-0 .sampled")
    assert {url.partition("#")[0] for url in tab.requests} <= {
        *((tmp_path / "one.html").as_uri(), "about:blank", "data:,"),
    }
    assert tab.problems == []


def test_a_folder_without_a_server_says_what_to_do(tmp_path, tab, settled):
    made(tmp_path / "folder", steps_run())
    tab.goto((tmp_path / "folder" / "index.html").as_uri())
    settled("!document.getElementById('problem').hidden")
    assert "python -m http.server --bind 127.0.0.1" in tab.inner_text("#problem")


def test_a_missing_part_is_named(server, tab, settled):
    folder, url = server
    made(folder / "torn", steps_run())
    (folder / "torn/data/iterations/1.json.gz").unlink()
    tab.goto(f"{url}/torn/")
    settled("!document.getElementById('problem').hidden")
    assert "data/iterations/1.json.gz: 404" in tab.inner_text("#problem")
