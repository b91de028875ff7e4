"""Notes: kept in the browser by the run, found, exported, imported, and built into a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from view_cases import NOTES, SETTINGS, made, steps_run

from rlanything.core.errors import ConfigError
from rlanything.view import notes as noting
from rlanything.view.notes import read_notes

pytestmark = pytest.mark.integration
MINE = {"iteration": 0, "slot": 3, "rewrite": 0, "rollout": 2, "step": 1, "text": "why did it turn?"}
OTHER = {**MINE, "iteration": 1, "rollout": 0, "step": None, "text": "built in"}


def file_of(*notes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    run = {"run": SETTINGS["run"], "identity": SETTINGS["identity"]}
    return {"format": NOTES, **run, "notes": list(notes), **changes}


def write_note(tab, settled, key: str, text: str) -> None:
    """With the keyboard alone: on the current step, or on the rollout."""
    tab.keyboard.press(key)
    settled("document.activeElement.tagName === 'TEXTAREA'")
    tab.keyboard.type(text)
    tab.keyboard.press("Escape")


def exported(tab, button: str) -> tuple[str, str]:
    with tab.expect_download() as waited:
        tab.click(button)
    return waited.value.suggested_filename, Path(waited.value.path()).read_text()


@pytest.fixture(params=["folder", "single"])
def noted(request, server, tab, look, settled):
    """The address of a page with a note on a step and one on a rollout, and the identity of its run."""
    folder, url = server
    single = request.param == "single"
    name = "noted.html" if single else "noted-folder"
    identity = f"{name}/full/seed-0"
    made(folder / name, steps_run(), single=single, identity=identity)
    at = (folder / name).as_uri() if single else f"{url}/{name}/"
    look(f"{at}#i=0&s=3&r=2&t=1")
    write_note(tab, settled, "m", "strangely n p j\nturned?")
    look(f"{at}#i=1&s=3")
    write_note(tab, settled, "m", "whole rollout")
    look(f"{at}#i=0&s=3&r=2&t=1")
    yield at, identity
    assert tab.problems == []
    tab.evaluate("localStorage.clear()")


def test_notes_are_kept_and_found(noted, tab, settled, counted):
    kept = tab.input_value("#step-1 textarea")
    assert kept == "strangely n p j\nturned?", "it is there after loading again"
    assert tab.locator("#list .marks a", has_text="✎").count() == 2
    tab.fill("#words", "strange")
    counted("1 of 7")
    tab.fill("#words", "")
    tab.check("#filters input[value=noted]")
    counted("2 of 7")
    tab.click("#notes > summary")
    assert tab.inner_text("#notes summary") == "Notes (2)"
    settled("document.querySelector('#written a')")  # what is folded is drawn once it has opened
    links = tab.locator("#written a")
    places = ["Iteration 0, slot 3, rollout 2, step 1", "Iteration 1, slot 3, rollout 0"]
    assert links.all_inner_texts() == places
    links.nth(1).click()
    settled("location.hash.startsWith('#i=1&s=3&r=0')")


def test_notes_are_exported_and_imported(noted, tab, tmp_path, look, settled):
    at, identity = noted
    tab.click("#notes > summary")
    called, text = exported(tab, "#as-json")
    found = json.loads(text)
    assert called == "full-seed-0-notes.json"
    assert found["notes"][0] == {**MINE, "text": "strangely n p j\nturned?"}
    (tmp_path / "notes.json").write_text(text)
    assert read_notes(tmp_path / "notes.json", {**SETTINGS, "identity": identity}) == found["notes"]
    called, text = exported(tab, "#as-markdown")
    assert called == "full-seed-0-notes.md"
    assert "## Iteration 0, slot 3, rollout 2, step 1\n\n> strangely n p j\n> turned?\n" in text

    tab.evaluate("localStorage.clear()")
    look(f"{at}#i=0&s=3&r=2&t=1")
    assert tab.inner_text("#notes summary") == "Notes"
    write_note(tab, settled, "m", "mine")
    tab.set_input_files("#import", str(tmp_path / "notes.json"))
    settled("document.getElementById('noted').textContent === ' (2)'")
    settled("document.querySelector('#step-1 textarea')")
    assert tab.input_value("#step-1 textarea") == "mine\n\nstrangely n p j\nturned?", "both texts stay"
    tab.fill("#step-1 textarea", " ")
    look(f"{at}#i=0&s=3&r=2&t=1")
    assert tab.inner_text("#notes summary") == "Notes (1)", "an empty note is none"


def test_notes_of_two_tabs_do_not_overwrite_each_other(site, browser):
    context = browser.new_context()
    first, second = context.new_page(), context.new_page()
    for step, tab in enumerate((first, second)):
        tab.goto(f"{site}/votes/#i=0&s=3&r=0&t={step}")
        tab.wait_for_selector("body[data-shown]", state="attached")
    for step, tab in enumerate((first, second)):
        tab.click(f"#step-{step} .note summary")
        tab.fill(f"#step-{step} textarea", f"of tab {step}")
    for tab in (first, second):
        tab.get_by_text("Notes (2)").wait_for()
        assert [n["text"] for n in json.loads(tab.evaluate("packed(index)"))["notes"]] == [
            "of tab 0",
            "of tab 1",
        ]
    context.close()


WRONG = [
    ("{", "not JSON"),
    ("[]", "not notes that a page exported"),
    (json.dumps(file_of(MINE, identity="other", run="<b>x")), "notes on another run"),
    (json.dumps(file_of(*[MINE] * (noting.MOST + 1))), str(noting.MOST)),
    *(
        (json.dumps(file_of({**MINE, **change})), said)
        for change, said in [
            ({"slot": -1}, "slot"),
            ({"slot": 1.5}, "slot"),
            ({"rewrite": 2}, "rewrite"),
            ({"step": "x"}, "step"),
            ({"text": ""}, "text"),
            ({"text": 7}, "text"),
            ({"text": "x" * (noting.LONGEST + 1)}, "text"),
        ]
    ),
]


def test_notes_that_are_none_are_refused_by_page_and_command_and_nothing_changes(
    site, tab, tmp_path, look, settled
):
    look(f"{site}/votes/#i=0&s=3&r=2&t=1")
    for k, (text, said) in enumerate(WRONG):
        file = tmp_path / f"{k}.json"
        file.write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_notes(file, SETTINGS)
        tab.evaluate("document.getElementById('problem').hidden = true")
        tab.set_input_files("#import", str(file))
        settled("!document.getElementById('problem').hidden")
        assert said in tab.inner_text("#problem")
    assert tab.evaluate("[localStorage.length, notesOf(index).length]") == [0, 0]
    assert tab.problems == []


def test_a_file_of_notes_that_is_too_large_or_no_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "notes.json").write_text(json.dumps(file_of(MINE)))
    assert read_notes(tmp_path / "notes.json", SETTINGS) == [MINE]
    with pytest.raises(ConfigError, match=r"--notes .*absent\.json: No such file"):
        read_notes(tmp_path / "absent.json", SETTINGS)
    monkeypatch.setattr(noting, "MOST_MB", 0)
    with pytest.raises(ConfigError, match="more than 0 MB"):
        read_notes(tmp_path / "notes.json", SETTINGS)


def test_notes_that_are_built_in_are_shown_searched_and_linked(server, tab, look, counted, settled):
    folder, url = server
    made(folder / "built", steps_run(), notes=[MINE, OTHER, {**MINE, "slot": 77}])
    look(f"{url}/built/#i=0&s=3&r=2")
    assert tab.inner_text("#step-1 p.note") == "Note in this page: why did it turn?"
    tab.check("#filters input[value=noted]")
    counted("2 of 7")
    tab.fill("#words", "built")
    counted("1 of 7")
    tab.click("#notes > summary")
    settled("document.querySelector('#written a')")
    assert "slot 77, rollout 2, step 1 (not in this page)" in tab.inner_text("#written")
    assert json.loads(tab.evaluate("packed(index)"))["notes"] == [], "only the reader's own are exported"
    assert tab.problems == []


FILL = """() => {
  localStorage.setItem('other', 'x');
  for (let size = 1 << 22; size >= 1; size >>= 1) {
    try { localStorage.setItem('other', localStorage.getItem('other') + 'x'.repeat(size)); } catch {}
  }
}"""
"""Until the browser has no room for one character more."""


def texts(tab) -> list[str]:
    return [note["text"] for note in json.loads(tab.evaluate("packed(index)"))["notes"]]


def lost_soon(tab, many: str) -> bool:
    return f"{many} of your notes would be lost with this tab" in tab.inner_text("#unstored")


@pytest.fixture
def alone(browser):
    """A tab that may be closed with notes in it that are nowhere else."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.long
def test_notes_for_which_a_browser_has_no_room_stay_in_the_tab(site, alone, tmp_path):
    alone.goto(f"{site}/votes/#i=0&s=3&r=0")
    alone.wait_for_selector("body[data-shown]", state="attached")
    alone.evaluate(FILL)
    for step in (0, 1):
        alone.click(f"#step-{step} .note summary")
        alone.fill(f"#step-{step} textarea", f"of step {step}")
    assert texts(alone) == ["of step 0", "of step 1"], "the second note does not take the first one away"
    assert lost_soon(alone, "2 changes")
    assert alone.evaluate("localStorage.getItem(storedAs(index))") is None
    (tmp_path / "more.json").write_text(json.dumps(file_of(MINE, OTHER)))
    alone.set_input_files("#import", str(tmp_path / "more.json"))
    alone.get_by_text("Notes (4)").wait_for()
    assert lost_soon(alone, "4 changes")
    alone.click("#notes > summary")
    assert len(json.loads(exported(alone, "#as-json")[1])["notes"]) == 4
    alone.evaluate("location.hash = '#i=1&s=3&r=0'")
    alone.get_by_text("built in").first.wait_for()
    assert lost_soon(alone, "4 changes"), "it is still said on another rollout"

    alone.evaluate("localStorage.removeItem('other')")
    alone.fill("#rollout > .note textarea", "room again")
    assert alone.is_hidden("#unstored")
    stored = json.loads(alone.evaluate("localStorage.getItem(storedAs(index))"))["notes"]
    assert {note["text"] for note in stored} == {"of step 0", "of step 1", MINE["text"], "room again"}


def test_notes_that_a_browser_may_not_keep_stay_in_the_tab(server, alone, tmp_path):
    """A page without an origin of its own may not use the browser's storage at all."""
    folder, url = server
    made(folder / "barred.html", steps_run(), single=True)
    policy = {"Content-Security-Policy": "sandbox allow-scripts allow-downloads", "Content-Type": "text/html"}
    alone.route("**/barred.html", lambda route: route.fulfill(response=route.fetch(), headers=policy))
    alone.goto(f"{url}/barred.html#i=0&s=3&r=2&t=1")
    alone.wait_for_selector("body[data-shown]", state="attached")
    assert alone.is_hidden("#unstored"), "nothing is lost yet"
    alone.click("#step-0 .note summary")
    alone.fill("#step-0 textarea", "mine")
    (tmp_path / "more.json").write_text(json.dumps(file_of(MINE, OTHER)))
    alone.set_input_files("#import", str(tmp_path / "more.json"))
    alone.get_by_text("Notes (3)").wait_for()
    assert texts(alone) == ["mine", MINE["text"], OTHER["text"]]
    assert lost_soon(alone, "3 changes")
    assert alone.input_value("#step-1 textarea") == MINE["text"], "imported notes are shown"


@pytest.mark.long
def test_stored_notes_that_cannot_be_read_are_put_aside_before_they_are_overwritten(site, alone):
    alone.goto(f"{site}/votes/#i=0&s=3&r=0")
    alone.wait_for_selector("body[data-shown]", state="attached")
    alone.evaluate("localStorage.setItem(storedAs(index), 'torn')")
    alone.evaluate(FILL)
    alone.click("#step-0 .note summary")
    alone.fill("#step-0 textarea", "new")
    assert lost_soon(alone, "1 change")
    assert alone.evaluate("localStorage.getItem(storedAs(index))") == "torn", "there is no room for a copy"
    alone.evaluate("localStorage.removeItem('other')")
    alone.fill("#step-0 textarea", "newer")
    assert alone.evaluate("localStorage.getItem(storedAs(index) + ' (unread)')") == "torn"
    assert texts(alone) == ["newer"]
    assert alone.is_hidden("#unstored")


def test_an_import_that_fails_at_its_last_note_takes_none(site, alone, tmp_path):
    alone.goto(f"{site}/votes/#i=0&s=3&r=2&t=1")
    alone.wait_for_selector("body[data-shown]", state="attached")
    alone.click("#step-1 .note summary")
    alone.fill("#step-1 textarea", "x" * noting.LONGEST)
    file = tmp_path / "long.json"
    file.write_text(json.dumps(file_of(OTHER, MINE)))
    alone.set_input_files("#import", str(file))
    alone.get_by_text("longer together than").wait_for()
    assert texts(alone) == ["x" * noting.LONGEST]
