"""Filters, search and the list, in a real browser."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from view_cases import group, made, page, rollout

from rlanything.view.filters import FILTERS
from rlanything.view.words import file_of, said, words

pytestmark = pytest.mark.integration


def listed(tab) -> list[str]:
    """The rollouts in the list that match, as iteration/slot/rollout."""
    return tab.evaluate("""() => [...document.querySelectorAll('#list .marks a:not(.off)')].map(mark => {
        const at = new URLSearchParams(mark.hash.slice(1));
        return [at.get('i'), at.get('s') + (at.has('p') ? 'q' : ''), at.get('r')].join('/');
    })""")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("failed", ["0/3/1"]),
        ("disputed", ["0/3/2"]),
        ("against", ["0/3/2"]),
        ("invalid", ["0/5/0"]),
        ("errors", ["0/5/1"]),
        ("accepted", ["1/3q/0"]),
    ],
)
def test_filters_filter(site, tab, name, wanted, look, counted):
    look(f"{site}/votes/")
    assert len(listed(tab)) == 7
    tab.check(f"#filters input[value={name}]")
    counted("1 of 7")
    assert listed(tab) == wanted
    tab.uncheck(f"#filters input[value={name}]")
    counted("7 of 7")
    assert tab.problems == []


def test_advantage_iteration_and_filters_together(site, tab, look, counted):
    look(f"{site}/votes/")
    tab.fill("#least", "2.5")
    counted("1 of 7")
    assert listed(tab) == ["1/3/0"]
    tab.select_option("#scope", "0")
    counted("0 of 7")
    tab.fill("#least", "")
    tab.check("#filters input[value=trains]")
    counted("4 of 7")
    assert listed(tab) == ["0/3/0", "0/3/2", "0/5/0", "0/5/1"]
    tab.reload()
    tab.wait_for_selector("body[data-shown]")
    assert listed(tab) == ["0/3/0", "0/3/2", "0/5/0", "0/5/1"], "the address holds the filters"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("zebra", ["1/3/0"]),
        ("RARE zeb", ["1/3/0"]),
        ("thing5", ["0/5/0", "0/5/1"]),
        ("crash", ["0/5/1"]),
        ("zebra thing5", []),
        ("ebra", []),
        ("constructor", []),
        ("plumbing", ["0/3/1"]),
        ("oracular", ["1/3q/0"]),
        ("__proto__ hasOwnProperty", []),
    ],
)
def test_search_finds_rollouts_with_all_words(site, tab, text, wanted, look, settled):
    look(f"{site}/votes/")
    tab.fill("#words", text)
    settled(f"document.getElementById('shown').textContent.startsWith('{len(wanted)} of 7')")
    assert listed(tab) == wanted
    assert tab.problems == []


def test_found_words_are_marked(site, tab, look):
    look(f"{site}/votes/#i=1&s=3&q=zeb")
    assert tab.locator("#rollout mark").all_inner_texts() == ["zebra"]
    assert tab.input_value("#words") == "zeb"


def test_a_long_list_comes_in_parts(server, tab, look):
    folder, url = server
    made(folder / "long", [page(k, [group(s, [rollout(0, str)]) for s in range(50)]) for k in range(5)])
    look(f"{url}/long/")
    assert tab.locator("#list li").count() == 100
    for wanted in (200, 250):
        tab.click("#more")
        assert tab.locator("#list li").count() == wanted
    assert tab.is_hidden("#more")


@pytest.mark.long
def test_the_page_splits_texts_into_words_as_the_index_does(site, tab, look):
    look(f"{site}/votes/")
    known = [chr(k) for k in range(0x30000) if unicodedata.category(chr(k)) not in ("Cn", "Cs")]
    lines = ["".join(f"{c} a{c}b " for c in known[k : k + 64]) for k in range(0, len(known), 64)]
    lines += ["ΑΣ ΑΣΑ İstanbul", "x" * 50, "𝔘nicode_and_snake", "cool-ly don't"]
    found = tab.evaluate(
        "lines => lines.map(line => wordsOf(line).map(word => [word, fileOf(word, 256)]))", lines
    )
    differ = [
        (line, set(map(tuple, theirs)) ^ {(word, file_of(word)) for word in words(line)})
        for line, theirs in zip(lines, found, strict=True)
        if set(map(tuple, theirs)) != {(word, file_of(word)) for word in words(line)}
    ]
    assert differ == [], f"Unicode {unicodedata.unidata_version} of Python {sys.version_info[:2]}"


def test_a_thought_in_a_valid_reply_is_found_marked_and_open(site, tab, look):
    look(f"{site}/votes/#i=0&s=3&r=1&q=plumbing")
    assert tab.locator("#rollout details.reply[open] mark").all_inner_texts() == ["plumbing"]
    look(f"{site}/votes/#i=1&s=3&p=1&r=0")
    assert tab.locator("#rollout details.reply[open]").count() == 0
    assert tab.locator("#rollout .step > details.reply").count() == 2, "each reply says more than its action"
    assert tab.problems == []


def test_marks_around_a_reply_are_no_words():
    assert words(said("<think>so</think> go<|im_end|></s>")) == {"so", "go"}
    assert said(None) == ""


def test_rollouts_without_an_advantage_have_none_of_at_least_zero(server, tab, look, counted):
    folder, url = server
    idle = [{**one, "advantage": None} for one in rollout(1, str)["steps"]]
    made(
        folder / "idle", [page(0, [group(3, [rollout(0, str), rollout(1, str, steps=idle, advantage=None)])])]
    )
    look(f"{url}/idle/#a=0")
    counted("1 of 2")
    assert listed(tab) == ["0/3/0"]


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("#i=0", "Iteration 0, slot 3 Rollout 0"),
        ("#i=0&s=5", "Iteration 0, slot 5 Rollout 0"),
        ("#i=1&p=1", "Iteration 1, slot 3, rewrite Rollout 0"),
        ("#i=0&s=3&r=2", "Iteration 0, slot 3 Rollout 2"),
    ],
)
def test_a_short_address_means_the_first_there_is(site, tab, address, shown, look):
    look(f"{site}/votes/{address}")
    assert f"{tab.inner_text('#task h2')} {tab.inner_text('#rollout h2')}".startswith(shown)
    assert tab.is_hidden("#problem")


def test_what_is_not_there_is_named_without_null(site, tab, settled):
    tab.goto(f"{site}/votes/#i=7")
    settled("!document.getElementById('problem').hidden")
    assert tab.inner_text("#problem") == "this run has no iteration 7"


def test_a_program_is_against_only_where_a_wrong_test_misjudges_it():
    tests = {"written": [{"right": False, "text": "x"}, {"right": True, "text": ""}], "programs": []}
    cases = {(True, False): True, (False, True): True, (True, True): False, (False, False): False,
             (None, True): False, (True, None): False}  # fmt: skip
    for (right, result), wanted in cases.items():
        tests["programs"] = [{"rollout": 0, "right": right, "written": [result, True]}]
        assert FILTERS["against"].test({"tests": tests}, {"rollout": 0}) is wanted, (right, result)


def test_one_reply_without_a_test_makes_no_rollout_invalid():
    written = [{"right": None, "text": ""}, {"right": True, "text": "assert f(1)"}]
    good, bad = {"steps": [{"valid": True}]}, {"steps": [{"valid": False}]}
    invalid = FILTERS["invalid"].test
    assert not invalid({"tests": {"written": written}}, good)
    assert invalid({"tests": {"written": written}}, bad)
    assert invalid({"tests": {"written": written[:1]}}, good)
    assert not invalid({"tests": {"written": []}}, good)
