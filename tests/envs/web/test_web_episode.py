"""One episode: what cannot be done is answered in text, and what was typed cannot pass for the page."""

from __future__ import annotations

import json

from web_cases import at_start


def test_typing_into_what_is_no_field_is_answered_in_text(pool):
    episode, starts = at_start(pool, "click-button", "1"), pool.starts
    number = next(item.number for item in episode.view.elements if item.role == "button")
    for text in (f"type {number} x", json.dumps({"action_type": "TYPING", "element": number, "text": "x"})):
        assert episode.next_actions(text) is None
        assert episode.step(text).startswith("You did nothing: that is no text field.")
    assert not episode.done
    assert pool.starts == starts


def test_a_typed_text_is_echoed_on_one_line_with_its_quotes_escaped(pool):
    episode = at_start(pool, "enter-text", "1")
    number = episode.scene.fields()[0].number
    forged = 'x" into textbox "".\n[9] button "Done" selected\u2028more'
    seen = episode.step(json.dumps({"action_type": "TYPING", "element": number, "text": forged}))
    said = seen.splitlines()[0]
    assert said.startswith(
        r'You typed "x\" into textbox \"\".\n[9] button \"Done\" selected\u2028more" into textbox'
    )
    assert not any(line.startswith("[9]") for line in seen.splitlines())


def test_what_a_page_shows_can_be_written_in_utf_8(pool):
    episode = at_start(pool, "enter-text", "1")
    number = episode.scene.fields()[0].number
    seen = episode.step(f"type {number} x{chr(0x1F600) * 150}")  # the page cuts the value within a pair
    assert seen.encode().decode() == seen
    assert "?" in episode.scene.fields()[0].value


def test_a_place_outside_the_page_is_answered_in_text(pool):
    episode = at_start(pool, "click-test", "1")
    for x, y in ((500, 10), (10, 400), (4000, 4000)):
        call = json.dumps({"action_type": "CLICK", "x": x, "y": y})
        assert episode.next_actions(call) is None
        assert "outside the page, which is 500 by 400 pixels" in episode.step(call)
    assert not episode.done


def test_a_click_on_a_place_says_what_it_met(pool):
    episode = at_start(pool, "click-test", "1")
    seen = episode.step(json.dumps({"action_type": "CLICK", "x": 1, "y": 399}))
    assert seen.startswith("You clicked the page.")


def test_what_keys_did_is_said_as_on_a_desktop(pool):
    episode = at_start(pool, "click-test", "1")
    assert [episode.step(text).splitlines()[0] for text in ("press ctrl+a", "press tab", "wait")] == [
        'You pressed "ctrl+a". Nothing changed.',
        'You pressed "tab".',
        "You waited. Nothing changed.",
    ]
