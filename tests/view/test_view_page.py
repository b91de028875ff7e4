"""The page in a real browser: a rollout, its task, links and the keyboard."""

from __future__ import annotations

import pytest
from view_cases import made, steps_run

pytestmark = pytest.mark.integration


def test_a_rollout_is_shown_with_votes_rewards_and_what_the_environment_says(site, tab, look):
    look(f"{site}/votes/#i=0&s=3&r=2")
    first = tab.locator("#step-0")
    assert first.locator(".action").inner_text() == "go to place0"
    assert first.locator(".vote.good b").inner_text() == "+ good"
    assert first.locator(".vote.bad b").inner_text() == "− bad ≠ environment"
    assert "R = O + λ × mean vote = +1 + 0.5 × +0.000 = +1.000, advantage +0.500" in first.inner_text()
    assert "The environment: good (right way)" in first.inner_text()
    first.locator("summary", has_text="2 admissible commands").click()
    first.locator(".commands").wait_for()
    assert first.locator(".commands li").all_inner_texts() == ["go to place0", "look"]
    chip = first.locator(".vote.good")
    chip.locator("summary").click()
    chip.get_by_text("trains the reward model: advantage +0.250, weight 0.500").wait_for()
    first.locator(".tokens summary").click()
    tab.wait_for_selector("#step-0 .sampled")
    assert first.locator(".token").first.inner_text().split() == ["go", "−0.50"]
    assert first.locator(".token.rare").first.inner_text().split() == ["id", "2", "−3.00"]
    rows = tab.locator("#group tbody tr").all_inner_texts()
    assert [row.split("\t")[1] for row in rows] == ["✓ success", "✗ no success", "✓ success"]
    assert rows[1].endswith("no: all its advantages are 0")
    assert tab.problems == []


def test_the_history_of_a_task_is_beside_it(site, tab, look):
    look(f"{site}/votes/#i=1&s=3&p=1")
    assert "a rewrite, to be harder: accepted: because" in tab.inner_text("#task")
    tab.wait_for_selector("#task .history details")
    history = tab.locator("#task .history")
    assert "v0, the first task (shown here)" in history.inner_text()
    history.locator(
        "summary", has_text="rejected: too hard; accuracy of the task 0.500, of the rewrite 0.250"
    ).click()
    history.get_by_text("adapter wrote", exact=True).wait_for()
    assert tab.problems == []


def test_programs_and_tests_are_a_matrix(site, tab, look):
    look(f"{site}/tests/#i=0&s=3")
    rows = tab.locator("#matrix tbody tr").all_inner_texts()
    assert [row.split() for row in rows] == [
        ["0", "right", "+1.500", "+", "+", "+", "−", "?"],
        ["1", "wrong", "+0.500", "+", "−", "−", "−", "?"],
    ]
    tab.locator("#task summary", has_text="3 written tests").click()
    fold = tab.locator(
        "#task details details", has_text="w1, written test: wrong, reward −1.000, does not train"
    )
    fold.locator("summary").click()
    fold.get_by_text("assert f(1) == 3").wait_for()
    assert tab.inner_text("#step-0 .action") == "print(1)"
    assert tab.problems == []


def test_links_lead_to_a_step_and_back(site, tab, look, settled):
    look(f"{site}/votes/#i=0&s=3&r=0&t=1")
    assert tab.evaluate("document.activeElement.id") == "step-1"
    tab.click("#group tbody tr:nth-child(3) a")
    settled("document.querySelector('#rollout h2').textContent.startsWith('Rollout 2')")
    tab.click("#step-0 h3 a")
    settled("document.querySelector('#step-0.current')")
    assert tab.evaluate("location.hash") == "#i=0&s=3&r=2&t=0"
    tab.go_back()
    tab.go_back()
    settled("document.querySelector('#step-1.current')")
    assert tab.inner_text("#rollout h2").startswith("Rollout 0")
    assert tab.problems == []


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("#i=9&s=3", "no iteration 9 with slot 3"),
        ("#i=0&s=3&r=7", "slot 3 has no rollout 7"),
        ("#i=0&s=3&r=99999999999999", ""),
        ("#i=<b>&s=..%2F..&f=__proto__,x&a=1e9&k=-1&t=constructor", ""),
        ("#%ff%00", ""),
    ],
)
def test_an_address_that_leads_nowhere(site, tab, place, said, settled):
    tab.goto(f"{site}/votes/{place}")
    settled("document.body.dataset.shown !== undefined || !document.getElementById('problem').hidden")
    assert said in tab.inner_text("#problem")
    assert bool(said) != tab.is_hidden("#problem")
    assert tab.problems == []


def test_the_keyboard(site, tab, look, settled):
    look(f"{site}/votes/#i=0&s=3&r=0")
    for key, wanted in [
        ("j", "t=0"), ("j", "t=1"), ("j", "t=1"), ("k", "t=0"), ("n", "r=1"), ("n", "r=2"), ("n", "s=5&r=0"),
        ("p", "s=3&r=2"), ("N", "s=5&r=0"), ("P", "s=3&r=0"), ("P", "i=1&s=3&p=1&r=0"),
    ]:  # fmt: skip
        tab.keyboard.press(key)
        settled(f"location.hash.endsWith('{wanted}') && document.body.dataset.shown === location.hash")
    tab.keyboard.press("j")
    settled("document.querySelector('#step-0.current')")
    tab.keyboard.press("t")
    tab.wait_for_selector("#step-0 .sampled")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "words"
    tab.keyboard.type("j?n", delay=150)
    settled("document.getElementById('shown').textContent.startsWith('0 of')")
    tab.keyboard.press("Escape")
    assert tab.evaluate("document.activeElement.id") != "words"
    tab.keyboard.press("?")
    settled("document.getElementById('keys').open")
    tab.keyboard.press("j")
    assert "t=0" in tab.url, "keys do nothing behind the dialog"
    tab.keyboard.press("Escape")
    settled("!document.getElementById('keys').open")
    documented = set(tab.locator("#keys kbd").all_text_contents())
    assert set(tab.evaluate("Object.keys(KEYS)")) == documented - {"Esc"}
    assert tab.problems == []


def test_what_the_first_view_needs_loads_at_once(server, tab, look):
    """One script; the index is asked for before the script has come, and once."""
    folder, url = server
    made(folder / "quick", steps_run())
    look(f"{url}/quick/")
    asked = [one.removeprefix(f"{url}/quick/") for one in tab.requests if one.startswith(f"{url}/quick/")]
    assert [name for name in asked if name.endswith(".js")] == ["view.js"]
    assert asked.count("data/index.json.gz") == 1
    assert asked.index("data/index.json.gz") < asked.index("view.js")
    assert asked.count("data/iterations/1.json.gz") == 1
    assert tab.problems == []


def test_a_page_with_a_file_for_each_script_may_be_replaced(tmp_path):
    """As pages were written before."""
    made(tmp_path / "page", steps_run())
    (tmp_path / "page" / "notes.js").write_text("'use strict';")
    made(tmp_path / "page", steps_run())
    assert [path.name for path in (tmp_path / "page").glob("*.js")] == ["view.js"]
