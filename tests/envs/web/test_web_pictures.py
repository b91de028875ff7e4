"""Pictures of pages: the same bytes for the same seed and actions, and places that hit what a picture shows."""

from __future__ import annotations

import json
import random

import pytest
from PIL import ImageChops
from web_cases import act, at_start, clicked, evaluate, forget, pixels, shows, small

from envs.computer.observes import OBSERVES
from envs.web.browser.pool import Pool, Settings
from envs.web.browser.view import BrowserError
from envs.web.kinds.scene import FIELDS
from envs.web.kinds.table import KINDS
from rlanything.core.images import Image
from rlanything.core.protocols import Pictured

MIXED = {
    "focus-text-2": ("type 1 left behind", "click 2"),
    "click-tab-2": ("click 2",),
    "email-inbox": ("click 3",),
}
"""Kinds whose pages keep something of an episode, or have images -> what is done there."""
QUERY = 50
"""Pixels from above that the instruction fills."""


def walk(pool: Pool, kind: str, seed: str, texts=None) -> list[str]:
    """The names of the pictures of an episode."""
    texts = MIXED[kind] if texts is None else texts
    views = [shows(pool, kind, *texts[:n], seed=seed, picture=True) for n in range(len(texts) + 1)]
    return [view.picture.sha256 for view in views]


@pytest.fixture(scope="module")
def first(installed):
    """Kind -> the pictures of an episode in a fresh browser."""
    fresh = Pool(Settings(pictures=True))
    try:
        return {kind: walk(fresh, kind, "7") for kind in MIXED}
    finally:
        fresh.close()


@pytest.mark.long
def test_a_used_page_beside_other_pages_shows_the_same_bytes(seeing, first):
    for kind in MIXED:
        walk(seeing, kind, "8")
        shows(seeing, kind, "click 1", seed="7")  # without a picture, in a page that was used
    assert {kind: walk(seeing, kind, "7") for kind in reversed(MIXED)} == first
    assert len({name for names in first.values() for name in names}) > len(MIXED)
    assert not any(item.value for item in shows(seeing, "focus-text-2", seed="6").items)


def test_episodes_that_advance_together_show_the_same_bytes(seeing, first, monkeypatch):
    forget(seeing)
    episodes = {kind: [(seed, [*map(act, texts)]) for seed in "879"] for kind, texts in MIXED.items()}
    seeing.play_ahead(episodes, picture=True)
    monkeypatch.setattr(seeing, "_call", None)  # what follows is known already
    for kind, texts in MIXED.items():
        shown = shows(seeing, kind, *texts, seed="7", picture=True)
        assert shown.picture.sha256 == first[kind][-1]
        assert shown == shows(seeing, kind, *texts, seed="7"), "a view with a picture is a view"


def test_places_are_those_of_a_page_that_was_loaded_for_its_episode_as_pictures_are(seeing):
    fresh = seeing.places("click-test", "7", [])
    forget(seeing)
    shows(seeing, "click-test", seed="8")
    evaluate(seeing, "click-test", "document.body.style.paddingTop = '40px'")  # what another episode leaves
    assert seeing.places("click-test", "7", []) == fresh


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_pages_of_all_kinds_show_the_same_bytes_in_two_browsers(seeing):
    other = Pool(Settings(pictures=True))
    try:
        for kind in sorted(KINDS):
            texts, rng = [], random.Random(kind)
            view = shows(other, kind, seed="7", picture=True)
            while len(texts) < 4 and not view.done and view.elements:
                item = rng.choice(view.elements)
                typed = item.role in FIELDS
                texts.append(f"type {item.number} abc" if typed else f"click {item.number}")
                view = shows(other, kind, *texts, seed="7", picture=True)
            walk(seeing, kind, "8", texts[:1])
            assert walk(seeing, kind, "7", texts) == walk(other, kind, "7", texts), kind
    finally:
        other.close()


def box(picture: Image) -> tuple[int, int, int, int]:
    """Where something is drawn on the white of a task, below its instruction: left, upper, right, lower."""
    area = pixels(picture).crop((0, QUERY, 160, 210))
    white = area.copy()
    white.paste("white", (0, 0, *area.size))
    x, y, right, lower = ImageChops.difference(area, white).getbbox()
    return x, y + QUERY, right, lower + QUERY


def test_a_click_in_the_middle_of_a_box_of_the_picture_hits_it(seeing):
    """The box is found in the picture alone; the places that the page tells lie in it."""
    left, upper, right, lower = box(shows(seeing, "click-test", picture=True).picture)
    middle = (left + right) // 2, (upper + lower) // 2
    for reply in (
        clicked(*middle),
        f'I click the button.\n<tool_call>\n{{"name": "computer_use", "arguments": {{"action": "left_click", '
        f'"coordinate": [{middle[0] * 999 // 500 + 1}, {middle[1] * 999 // 400 + 1}]}}}}\n</tool_call>',
    ):
        episode = at_start(seeing, "click-test", "1")
        episode.step(reply)
        assert episode.view.success
    beside = at_start(seeing, "click-test", "1")
    beside.step(clicked(right + 2, lower + 2))
    assert not beside.done
    ((x, y),) = seeing.places("click-test", "1", []).values()
    assert max(abs(x - middle[0]), abs(y - middle[1])) <= 1


def test_a_picture_shows_the_task_and_nothing_of_other_episodes(seeing):
    """The page's own display counts rewards and episodes, and a cover hides what an episode has ended with."""
    start = shows(seeing, "click-test", picture=True)
    end = shows(seeing, "click-test", "click 1", picture=True)
    assert end.success
    for view in (start, end):
        shown = pixels(view.picture)
        assert shown.size == (500, 400)
        assert shown.getpixel((155, 5)) == (255, 255, 0), "the instruction is not covered"
        outside = shown.crop((160, 0, 500, 400))
        assert outside.getcolors() == [(340 * 400, (0x55, 0x55, 0x55))]


def test_keys_choose_in_a_list_whose_options_no_picture_shows(seeing):
    episode = at_start(seeing, "choose-list", "3")
    numbers = {item.role: item.number for item in reversed(episode.view.elements)}
    place = seeing.places("choose-list", "3", [])
    assert numbers["list"] in place
    assert numbers["option"] not in place
    before = next(item.name for item in episode.view.items if item.state == "selected")
    episode.step(clicked(*place[numbers["list"]]))
    episode.step("press down")
    (chosen,) = [item for item in episode.view.items if item.state == "selected"]
    assert chosen.name != before
    episode.step("press up")
    assert [item.name for item in episode.view.items if item.state == "selected"] == [before]


def test_a_page_that_takes_another_size_is_refused(seeing, monkeypatch):
    monkeypatch.setattr(seeing, "settings", seeing.settings._replace(screen=(160, 210)))
    with pytest.raises(BrowserError, match="the picture has 500 x 400 pixels, the screen 160 x 210"):
        shows(seeing, "click-test", seed="size", picture=True)


@pytest.fixture(scope="module")
def observing(installed):
    """Families that differ in what an agent is shown; those with pictures share a browser."""
    return {name: small(observe=name) for name in OBSERVES}


@pytest.mark.parametrize("name", OBSERVES)
def test_an_agent_is_shown_what_observe_says(observing, name):
    family, shown = observing[name], OBSERVES[name]
    assert isinstance(family, Pictured)
    assert (family.pictures, family.only_pictures) == (shown.pictures, name == "screenshot")
    (task,) = family.make("train", 1, 0)
    environment = family.environment()
    seen = [environment.reset(task, 0)]
    seen += [environment.step(text).observation for text in ("no action", clicked(499, 399))]
    assert seen[0].text.startswith(task.instruction)
    for observation in seen:
        assert len(observation.images) == shown.pictures
        assert ("[1] " in observation.text) == shown.tree
        assert bool(observation.actions) == (name == "tree")
    assert seen[0].images == seen[1].images
    assert seen[1].text.startswith("You did nothing: ")
    said = {"screenshot": "You clicked (499, 399). Nothing changed."}.get(name, "You clicked the page.")
    assert seen[2].text.startswith(said)
    assert environment.step("fail").observation.images == seen[2].images


def test_an_expert_is_said_as_calls_of_a_tool_that_succeed(observing):
    """Where it clicks on what a picture shows. Its observations are those that an agent without numbers reads."""
    family, solved = observing["screenshot"], 0
    for task in family.make("train", 4, 1):
        environment = family.environment()
        answer = environment.reset(task, 0)
        demonstration = family.demonstration(task)
        assert demonstration
        for observation, reply in demonstration:
            assert observation.text == answer.text
            result = environment.step(reply)
            answer = result.observation
        solved += result.success
    assert solved >= 3


def test_a_hint_for_agents_without_numbers_names_an_element(observing):
    (task,) = observing["screenshot"].make("in_domain", 1, 3)
    facts = observing["screenshot"].describe(task)
    hint = next(line for line in facts.splitlines() if line.startswith("hint: "))
    assert hint.startswith("hint: start with the ")
    kind = task.payload["kind"]
    easier = observing["screenshot"].parse(task, json.dumps({kind: hint.removeprefix("hint: ")}))
    assert observing["screenshot"].validate(easier) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observe": "text"}, r"observe: 'text' is not one of screenshot, tree, both"),
        ({"screen": [100, 400]}, r"screen: 100 is not a whole number from 160 to 4096"),
        ({"screen": [500, 200]}, r"screen: 200 is not a whole number from 210 to 4096"),
        ({"screen": [500]}, r"screen: \[500\] is not \[width, height\] in pixels"),
    ],
)
def test_what_cannot_be_shown_is_refused_by_its_argument(changes, words):
    with pytest.raises(ValueError, match=words):
        small(**changes)
