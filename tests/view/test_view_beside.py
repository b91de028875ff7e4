"""Two rollouts side by side: best and worst of a task, two iterations, and two runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from view_cases import group, made, page, programs_run, rollout, step, task

pytestmark = pytest.mark.integration
PARTING = """pairs => [
    pairs.map(([a, b]) => partingOf({steps: a}, {steps: b})),
    pairs.map(([a, b]) => partingOf({steps: b}, {steps: a}))]"""


def walk(*actions: str) -> list[dict]:
    return [{**step(k, str), "action": action} for k, action in enumerate(actions)]


@pytest.fixture(scope="module")
def two(server) -> str:
    """A run with slot 3 in iterations 0 and 2 and with another task there in 1, and a run with the same task."""
    folder, url = server
    tries = [
        rollout(0, str, outcome=-1, reward=-0.5, steps=walk("go", "look", "sleep")),
        rollout(1, str, reward=1.0, steps=walk("go", "look", "take", "put")),
        rollout(2, str, outcome=-1, status="env_error", reward=None, steps=[]),
        rollout(3, str, reward=1.5, steps=walk("go", "take")),
    ]
    later = [rollout(0, str, reward=1.25, steps=walk("go", "look", "sleep"))]
    mine = [
        page(0, [group(3, tries, accuracy=0.6667)]),
        page(1, [group(3, [rollout(0, str)], task=task(99, str))]),
        page(2, [group(3, later, accuracy=1.0)]),
    ]
    other = [
        page(
            4,
            [
                group(8, [rollout(0, str, steps=walk("go"))], task=task(3, str)),
                group(3, later, task=task(5, str)),
            ],
        )
    ]
    made(folder / "two", mine, against=other)
    return f"{url}/two/"


def cells(tab, table: str) -> list[list[str]]:
    return tab.evaluate(
        """table => [...document.querySelectorAll(table + ' tbody tr')].map(
        tr => [...tr.children].map(cell => cell.textContent))""",
        table,
    )


def test_best_and_worst_of_a_task_and_where_they_part(two, tab, look, settled):
    look(f"{two}#i=0&s=3&r=1")
    tab.keyboard.press("c")
    settled("document.querySelector('.pairs')")
    assert "r=3" in tab.url
    assert tab.url.endswith("c=0.0.3.0.0"), "a link leads here"
    assert tab.inner_text("#side-by-side .told") == "The first action is the same. They part at step 1."
    assert cells(tab, "#facts") == [
        ["rollout", "3", "0", "differs"],
        ["outcome", "✓ success", "✗ no success", "differs"],
        ["steps", "2", "3", "+1"],
        ["mean R", "1.500", "−0.500", "−2.000"],
    ]
    tab.click("details.others summary")
    tab.wait_for_selector("#others")
    assert [row[-1] for row in cells(tab, "#others")] == ["step 1", "step 1", "step 0", "itself"]
    rows = tab.locator("#side-by-side > .wide .pairs tbody tr")
    assert rows.count() == 2, "what is the same is folded"
    assert rows.nth(0).get_attribute("class") == "parting"
    assert tab.locator(".parting .action").all_inner_texts() == ["take", "look"]
    assert "ended" in rows.nth(1).inner_text()
    tab.click("#side-by-side .same summary")
    tab.wait_for_selector("#side-by-side .same .action")
    assert tab.locator(".same .action").all_inner_texts() == ["go", "go"]
    tab.click("#others tbody tr:nth-child(2) a")
    settled("document.querySelectorAll('.parting .action')[1]?.textContent === 'look'")
    tab.keyboard.press("c")
    settled("!document.getElementById('side-by-side').children.length")
    tab.go_back()
    settled("document.querySelector('.pairs')")
    assert tab.problems == []


def test_a_task_in_two_iterations_and_in_two_runs(two, tab, look, settled):
    look(f"{two}#i=0&s=3&r=0")
    settled("document.querySelectorAll('#beside option').length === 6")
    options = tab.locator("#beside optgroup").evaluate_all(
        "groups => groups.map(g => [g.label, ...[...g.children].map(o => o.text)])"
    )
    assert options == [
        ["full/seed-0", "iteration 0, slot 3, accuracy 0.667 (this group)",
         "iteration 2, slot 3, accuracy 1.000, the same task",
         "iteration 1, slot 3, accuracy 0.500, another task of the slot"],
        ["outcome/seed-0", "iteration 4, slot 8, accuracy 0.500, the same task",
         "iteration 4, slot 3, accuracy 0.500, another task of the slot"],
    ]  # fmt: skip
    tab.select_option("#beside", "0.2.3.0")
    settled("document.getElementById('facts')")
    assert tab.inner_text("#side-by-side .told") == "Both take the same actions to the end."
    facts = {name: rest for name, *rest in cells(tab, "#facts")}
    assert facts["iteration"] == ["0", "2", "differs"]
    assert facts["accuracy"] == ["0.667", "1.000", "+0.333"]
    assert facts["successes"] == ["2 of 3", "1 of 1", "differs"]
    assert facts["mean length"] == ["3.0", "3.0", "+0.0"]
    tab.select_option("#beside", "1.4.8.0")
    settled("document.getElementById('facts')?.textContent.includes('outcome/seed-0')")
    assert "Then the right one has ended" in tab.inner_text("#side-by-side .told")
    tab.click("#side-by-side a >> text=swap")
    settled("document.getElementById('run').textContent === 'outcome/seed-0'")
    assert "g=1&i=4&s=8&r=0" in tab.url
    assert tab.input_value("#which") == "1"
    assert "Then the left one has ended" in tab.inner_text("#side-by-side .told")
    assert tab.inner_text("#shown") == "2 of 2 rollouts, in 2 tasks"
    tab.select_option("#which", "0")
    settled("document.getElementById('run').textContent === 'full/seed-0'")
    assert tab.inner_text("#shown") == "6 of 6 rollouts, in 3 tasks"
    assert tab.problems == []


def test_a_link_to_two_runs_and_to_what_is_not_there(two, tab, look, settled):
    look(f"{two}#g=1&i=4&s=3&r=0&c=0.0.3.0.1")
    assert "The first 2 actions are the same. They part at step 2." in tab.inner_text("#side-by-side")
    tab.goto(f"{two}#g=1&i=4&s=3&r=0&c=0.7.3.0.1")
    settled("!document.getElementById('problem').hidden")
    assert "full/seed-0 has no rollout 1 of slot 3 in iteration 7" in tab.inner_text("#problem")
    for nothing in ("9.0.3.0.1", "1.x", "__proto__"):
        look(f"{two}#i=0&s=3&r=0&c={nothing}")
        assert tab.is_hidden("#problem")
    assert tab.problems == []


def test_programs_part_at_a_line(server, tab, look):
    folder, url = server
    pages = programs_run()
    for one, program in zip(
        pages[0].groups[0]["rollouts"], ("n = 1\nprint(n)", "n = 1\nprint(2)"), strict=True
    ):
        one["steps"] = [{**one["steps"][0], "action": program}]
    made(folder / "lines", pages)
    look(f"{url}/lines/#i=0&s=3&r=0&c=0.0.3.0.1")
    spans = tab.locator(".parting .action").evaluate_all(
        "all => all.map(one => [...one.children].map(s => [s.className, s.textContent]))"
    )
    assert spans == [[["quiet", "n = 1\n"], ["", "print(n)"]], [["quiet", "n = 1\n"], ["", "print(2)"]]]


@pytest.fixture(scope="module")
def parting(two, browser):
    opened = browser.new_page()
    opened.goto(two)
    opened.wait_for_selector("body[data-shown]", state="attached")
    yield lambda pairs: opened.evaluate(PARTING, pairs)
    opened.close()


ACTIONS = st.lists(st.sampled_from("ab").map(lambda action: {"action": action}), max_size=5)


@settings(deadline=None, max_examples=10)
@given(pairs=st.lists(st.tuples(ACTIONS, ACTIONS), min_size=20, max_size=40))
def test_they_part_at_the_first_step_that_differs(parting, pairs):
    for (left, right), at, back in zip(pairs, *parting(pairs), strict=True):
        assert at == back
        if at is None:
            assert left == right
        else:
            assert left[:at] == right[:at]
            assert left[at : at + 1] != right[at : at + 1]
