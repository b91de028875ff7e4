"""Filters, search and the list, in a real browser."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from view_cases import group, made, page, rollout

from rlanything.view.words import file_of, words

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
