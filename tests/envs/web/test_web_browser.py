"""The browser: the same seed and actions show the same, whatever else happened, and nothing leaves a page."""

from __future__ import annotations

import http.server
import threading
from contextlib import suppress

import pytest
from web_cases import evaluate, forget, shows

from envs.computer.actions import Action
from envs.web.browser.pool import Pool, Settings
from envs.web.browser.view import LONGEST, MOST_ITEMS, BrowserError, View
from envs.web.kinds.table import KINDS

MIXED = ("click-tab-2-hard", "email-inbox", "use-autocomplete", "click-dialog-2", "social-media", "click-pie")


def walk(pool: Pool, kind: str, seed: str, steps: int = 4) -> list[View]:
    """The views of a walk that clicks the first, third, fifth ... element."""
    views, texts = [shows(pool, kind, seed=seed)], []
    while len(texts) < steps and not views[-1].done and views[-1].elements:
        elements = views[-1].elements
        texts.append(f"click {elements[(2 * len(texts)) % len(elements)].number}")
        views.append(shows(pool, kind, *texts, seed=seed))
    return views


@pytest.mark.long
def test_a_page_that_was_used_shows_what_a_fresh_one_shows(pool):
    first = {kind: walk(pool, kind, "7") for kind in MIXED}
    for kind in MIXED:
        walk(pool, kind, "8")
    forget(pool)
    assert {kind: walk(pool, kind, "7") for kind in MIXED} == first
    fresh = Pool(Settings())
    try:
        assert {kind: walk(fresh, kind, "7") for kind in reversed(MIXED)} == first
    finally:
        fresh.close()


def test_what_was_typed_is_gone_in_the_next_episode(pool):
    """Into the fields of a page that does not empty them itself."""
    assert shows(pool, "focus-text-2", "type 1 left behind", seed="5").done
    assert [item.value for item in shows(pool, "focus-text-2", seed="6").items if item.value] == []


def test_episodes_that_advance_together_do_not_disturb_each_other(pool):
    alone = {seed: walk(pool, "email-inbox", seed) for seed in "abc"}
    forget(pool)
    texts = {seed: [] for seed in "abc"}
    for step in range(4):
        for seed in "cab":
            if step < len(alone[seed]):
                assert shows(pool, "email-inbox", *texts[seed], seed=seed) == alone[seed][step]
            if step + 1 < len(alone[seed]):
                elements = alone[seed][step].elements
                texts[seed].append(f"click {elements[(2 * step) % len(elements)].number}")


def test_a_page_goes_on_where_it_is_and_starts_again_where_it_must(pool):
    forget(pool)
    whole = shows(pool, "click-checkboxes", "click 1", "click 2")
    shows(pool, "click-checkboxes", "click 2")
    forget(pool)
    assert shows(pool, "click-checkboxes", "click 1", "click 2") == whole


def test_time_stands_still_and_chance_comes_from_the_seed(ours):
    first = shows(ours, "clock", "click 1")
    assert evaluate(ours, "clock", "() => Date.now()") == evaluate(ours, "clock", "() => Date.now()")
    shows(ours, "clock", seed="2")
    forget(ours)
    assert shows(ours, "clock", "click 1") == first
    assert shows(ours, "clock", "click 1", "wait").items != first.items


def test_pages_have_no_network(ours):
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        shows(ours, "plain")
        script = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
        assert evaluate(ours, "plain", script, url) == "refused"
        shows(ours, "plain", "click 2")
        assert evaluate(ours, "plain", "() => location.protocol") == "file:"
        server.shutdown()
    assert asked == []


def test_a_page_cannot_read_files(ours):
    shows(ours, "plain")
    script = "() => fetch('file:///etc/passwd').then((r) => r.text(), () => 'refused')"
    assert evaluate(ours, "plain", script) == "refused"


def test_text_with_markup_and_format_signs_stays_text(ours):
    view = shows(ours, "markup")
    assert view.instruction == "<script>alert(1)</script> {name} %s ${x} &lt;b&gt;"
    assert view.elements[0].name == "<img src=x onerror=core.endEpisode(1)> {0} %d"
    evil = "'); core.endEpisode(1); ('${core.endEpisode(1)}<img src=x onerror=core.endEpisode(1)>"
    view = shows(ours, "markup", f"type 2 {evil}")
    assert (view.elements[1].value, view.done) == (evil, False)


def test_an_element_is_dragged_to_another_one(ours):
    actions = [Action("move", 1), Action("drag", 2)]
    view = ours.play("drag", "1", [action.to_json() for action in actions])
    assert "dragged from to" in [item.name for item in view.items]


@pytest.mark.long
def test_a_page_of_ten_megabytes_is_cut(patient):
    view = shows(patient, "huge")
    assert len(view.items) == MOST_ITEMS
    assert view.more > 1000
    assert len(view.instruction) == 2000
    assert all(len(item.name) <= LONGEST for item in view.items)
    assert shows(patient, "huge", "click 1").items


def test_an_answer_that_is_no_view_is_an_error(ours):
    with pytest.raises(BrowserError, match="no view: KeyError"):
        shows(ours, "no-view")


@pytest.mark.long
def test_a_page_that_leads_away_never_shows_another_page(ours):
    shows(ours, "leaves", "click 1")
    for seed in "23":
        with suppress(BrowserError):
            view = shows(ours, "leaves", "click 1", "wait", seed=seed)
            assert (view.instruction, view.done) == ("Stay.", False)
    assert shows(ours, "plain", "click 1").success


def test_an_element_that_is_gone_is_said_to_be(pool):
    view = shows(pool, "click-button", "click 999")
    assert view.failed
    assert not view.done
    assert view.items == shows(pool, "click-button").items


def test_only_as_many_pages_stay_open_as_allowed():
    made = Pool(Settings(most_pages=2))
    try:
        for kind in list(KINDS)[:4]:
            shows(made, kind)
        assert [tab.kind for tab in made._tabs.open] == list(KINDS)[2:4]
    finally:
        made.close()
