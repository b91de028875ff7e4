"""Which page plays which episode (`envs.web.browser.tabs`), and that this changes nothing that is shown."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web_cases import act, forget

from envs.web.browser import asking
from envs.web.browser.pool import Pool, Settings
from envs.web.browser.tabs import LANES, Key, Tab, Tabs
from envs.web.browser.view import View
from envs.web.family import WebFamily
from rlanything.core.types import Task

KINDS = ("a", "b", "c")


def key(kind: str, seed: str, *actions: str) -> Key:
    return kind, seed, json.dumps([{"kind": name} for name in actions])


def tabs(*opened: Tab, most: int = 32) -> Tabs:
    made = Tabs(None, Path(), 1.0, most)
    made.open.extend(opened)
    return made


def tab(kind: str, played: Key | None = None, ended: bool = False) -> Tab:
    made = Tab(kind, SimpleNamespace())
    if played is not None:
        made.played(played, ended)
    return made


def planned(found: Tabs, *keys: Key) -> list[tuple[Tab | None, list[Key]]]:
    wanted: dict[str, list[Key]] = {}
    for each in keys:
        wanted.setdefault(each[0], []).append(each)
    return [(turn.tab, list(turn.keys)) for turn in found.plan(wanted)]


def test_a_page_goes_on_with_its_episode_and_the_furthest_one_does():
    start, near = tab("a", key("a", "1")), tab("a", key("a", "1", "x"))
    other = tab("a", key("a", "2", "x"))
    asked = key("a", "1", "x", "y")
    assert planned(tabs(near, start, other), asked) == [(near, [asked])]
    assert planned(tabs(start, other), asked) == [(start, [asked])]


def test_actions_that_only_begin_with_the_same_letters_are_others():
    once = tab("a", key("a", "1", "click"))
    assert not once.leads_to(key("a", "1", "clicks"))
    assert not once.leads_to(key("a", "1"))
    assert once.leads_to(key("a", "1", "click"))
    assert once.leads_to(key("a", "1", "click", "clicks"))
    assert not tab("a").leads_to(key("a", "1"))


def test_another_episode_gets_a_page_that_is_done_the_last_used_first_and_else_a_new_one():
    running, old, late = (
        tab("a", key("a", "1", "x")),
        tab("a", key("a", "2"), True),
        tab("a", key("a", "3"), True),
    )
    found = tabs(old, running, late)
    going = key("a", "1", "x", "y")
    four, five, six = (key("a", seed) for seed in "456")
    assert planned(found, going, four) == [(running, [going]), (late, [four])]
    assert planned(found, going, four, five, six) == [
        (running, [going]), (late, [four]), (old, [five]), (None, [six]),
    ]  # fmt: skip
    found.leave(key("a", "1", "x"))
    assert planned(found, four) == [(late, [four])]
    assert planned(tabs(old, running), four) == [(running, [four])], "it was left"


def test_a_running_episode_keeps_its_page_as_long_as_there_is_room():
    running = [tab("a", key("a", str(number), "x")) for number in range(3)]
    new = key("a", "9")
    assert planned(tabs(*running, most=4), new) == [(None, [new])]
    assert planned(tabs(*running, most=3), new) == [(running[0], [new])], "it was not used for longest"
    full = [tab("a", key("a", str(number), "x")) for number in range(LANES)]
    assert planned(tabs(*full), new) == [(full[0], [new])]


def test_where_there_is_no_room_a_page_plays_several_and_a_kind_without_a_page_gets_one():
    only = tab("a", key("a", "1"))
    going, more = key("a", "1", "x"), key("a", "2")
    assert planned(tabs(only, most=1), going, more) == [(only, [going, more])]
    several = [key("b", str(number)) for number in range(5)]
    assert planned(tabs(only, most=1), *several) == [(None, several)]


@pytest.mark.parametrize(("going", "new"), [(0, 9), (7, 9), (8, 8), (3, 20)])
def test_all_pages_of_a_kind_play_as_many_episodes(going, new):
    known = [tab("a", key("a", f"{number}", "x")) for number in range(going)]
    asked = [key("a", f"{number}", "x", "y") for number in range(going)]
    turns = planned(tabs(*known), *asked, *(key("a", f"new{number}") for number in range(new)))
    sizes = sorted(len(keys) for _, keys in turns)
    assert len(sizes) == LANES
    assert sizes[-1] - sizes[0] <= 1


EPISODES = st.builds(
    lambda kind, seed, actions: key(kind, seed, *actions),
    st.sampled_from(KINDS), st.sampled_from("123"), st.lists(st.sampled_from("xyz"), max_size=3),
)  # fmt: skip


@given(
    opened=st.lists(st.tuples(EPISODES, st.booleans()), max_size=12),
    wanted=st.sets(EPISODES, min_size=1, max_size=20),
    most=st.integers(1, 16),
)
def test_every_episode_has_one_turn_and_no_more_pages_open_than_allowed(opened, wanted, most):
    found = tabs(*(tab(each[0], each, ended) for each, ended in opened[:most]), most=most)
    turns = planned(found, *sorted(wanted))
    assert sorted(each for _, keys in turns for each in keys) == sorted(wanted)
    taken = [at for at, _ in turns if at is not None]
    assert len(set(map(id, taken))) == len(taken), "two turns would meet in one page"
    for at, keys in turns:
        assert keys
        assert len({each[0] for each in keys}) == 1
        assert at is None or at.kind == keys[0][0]
    for kind in KINDS:
        new = sum(at is None and keys[0][0] == kind for at, keys in turns)
        assert new <= max(1, LANES - len(found.of(kind)))
    beyond = len(found.open) + sum(at is None for at, _ in turns) - most
    assert beyond <= sum(not found.of(kind) for kind in KINDS), (
        "only a kind without a page takes another's place"
    )


def walks() -> list[tuple[str, str, list[str]]]:
    """Two kinds, six seeds, two ways of each that begin alike: twelve episodes of a kind."""
    rng = random.Random(0)
    return [
        (kind, str(seed), ["click 2", *(f"click {rng.randint(1, 6)}" for _ in range(2))])
        for kind in ("click-checkboxes", "click-tab-2") for seed in range(6) for _ in range(2)
    ]  # fmt: skip


def shown(pool: Pool, kind: str, seed: str, texts: list[str]) -> View:
    return pool.play(kind, seed, [act(text) for text in texts], picture=pool.settings.pictures)


@pytest.mark.long
@pytest.mark.parametrize(("most", "pictures"), [(1, False), (4, False), (32, False), (4, True)])
def test_episodes_that_advance_together_in_many_pages_show_what_each_shows_alone(most, pictures):
    alone, together = (Pool(Settings(most_pages=count, pictures=pictures)) for count in (1, most))
    try:
        for step in range(4):
            wanted: dict[str, list[tuple[str, list[dict]]]] = {}
            for kind, seed, texts in walks():
                wanted.setdefault(kind, []).append((seed, [act(text) for text in texts[:step]]))
            together.play_ahead(wanted, pictures)
            assert len(together._tabs.open) <= most
        assert len({tab.kind for tab in together._tabs.open}) == min(most, 2)
        assert together.starts == 1
        together._call = None  # what follows is known already
        for each in walks():
            assert shown(together, *each) == shown(alone, *each)
    finally:
        del together._call
        for pool in (alone, together):
            pool.close()


def test_the_pages_of_several_kinds_play_at_the_same_time(monkeypatch):
    """Each waits for the other: had the second been asked only afterwards, none would answer."""
    both, asked = asyncio.Barrier(2), asking.ask

    async def meeting(page, kind, name, what):
        async with asyncio.timeout(10):
            await both.wait()
        return await asked(page, kind, name, what)

    pool = Pool(Settings(most_pages=4))
    try:
        monkeypatch.setattr(asking, "ask", meeting)
        pool.play_ahead({"click-test": [("1", [])], "click-option": [("1", [])]})
        monkeypatch.undo()
        monkeypatch.setattr(pool, "_call", None)  # what follows is known already
        assert all(pool.play(kind, "1", []).items for kind in ("click-test", "click-option"))
    finally:
        monkeypatch.undo()
        pool.close()


def test_the_first_views_of_episodes_are_made_before_they_start(monkeypatch):
    family = WebFamily(kinds=("click-test", "click-option"), ood_kinds=("click-dialog",))
    tasks = family.make("train", 6, 0)
    pool = family._stage.pool
    forget(pool)
    family.prepare([(task, 0) for task in tasks])
    monkeypatch.setattr(pool, "_call", None)  # the browser is not asked again
    assert all(family.environment().reset(task, 0).actions for task in tasks)


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"seed": "1"},
        {"kind": "click-test"},
        {"kind": ["a"], "seed": "1"},
        {"kind": "click-test", "seed": 5},
        {"kind": "../../elsewhere", "seed": "1"},
        {"kind": "click-test", "seed": "a b"},
    ],
)
def test_a_task_that_names_no_page_fails_in_its_own_episode_alone(payload, monkeypatch):
    family = WebFamily(kinds=("click-test",), ood_kinds=("click-dialog",))
    good = family.make("train", 1, 0)[0]
    bad = Task("web", "", payload, {})
    asked = []
    monkeypatch.setattr(Pool, "play_ahead", lambda _pool, episodes, _pictures: asked.append(dict(episodes)))
    family.prepare([(bad, 0), (good, 0)])
    assert asked == [{"click-test": [(good.payload["seed"], [])]}]
    with pytest.raises((KeyError, ValueError, TypeError)):
        family.environment().reset(bad, 0)
