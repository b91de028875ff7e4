"""A run with pictures: each step shows what the agent saw, with the place where its action points drawn on it."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from image_cases import png
from view_cases import SAME, group, made, page, read, rollout, step

from envs.computer import computer_use, reply
from envs.computer.actions import Refusal
from rlanything.core.images import Image
from rlanything.files.images import ImageStore
from rlanything.view import screens
from rlanything.view import site as sites
from rlanything.view.export import export
from rlanything.view.screens import point

SCREEN = (640, 480)
SHOWN = [Image(png(*SCREEN, shade=k)) for k in range(3)]
CLICK = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [250, 750]}}'
PIXELS = '{"action_type": "CLICK", "x": 320, "y": 120}'
DAMAGED = {
    "sha256": "0" * 64,
    "width": None,
    "height": None,
    "problem": "a.png: its content has <b>another</b>",
}


def known(image: Image) -> dict[str, Any]:
    return {"sha256": image.sha256, "width": image.width, "height": image.height, "problem": ""}


@pytest.mark.parametrize(
    "action",
    [
        CLICK,
        PIXELS,
        f"I click.\n<tool_call>\n{CLICK}\n</tool_call>",
        '{"action_type": "DRAG_TO", "parameters": {"x": 0, "y": 479}}',
        '{"action_type": "TYPING", "parameters": {"text": "a", "x": 3, "y": 4}}',
        '{"name": "computer_use", "arguments": {"action": "mouse_move", "coordinate": [0, 999]}}',
        '{"name": "computer_use", "arguments": {"action": "scroll", "pixels": -2, "coordinate": [999, 1]}}',
        '{"name": "computer_use", "arguments": {"action": "mouse_move", "coordinate": [1000, 0]}}',
        f"The button.\n```json\n{PIXELS}\n```",
        f"```\n{PIXELS}\n```\nor\n```\n{CLICK}\n```",
        f"I click. {PIXELS} Done.",
        f"press {PIXELS}",
        f"type five {PIXELS}",
        f"```\nI click.\n```\n{PIXELS}",
    ],
)
def test_a_point_is_where_the_environment_clicks(action):
    wanted, found = reply.read(action, SCREEN), point(action, [known(SHOWN[0])])
    for share, at, side in zip(found, (wanted.x, wanted.y), SCREEN, strict=True):
        assert share * side == pytest.approx(at, abs=1.1)


@pytest.mark.parametrize(
    "action",
    [
        "click 3",
        "{",
        "[" * 100_000,
        "[1]",
        '{"action_type": "CLICK", "x": 640, "y": 1}',
        '{"action_type": "CLICK", "element": 3, "x": 1, "y": 1}',
        f"<tool_call>{CLICK}</tool_call><tool_call>{CLICK}</tool_call>",
        f"{PIXELS} or {CLICK}",
        f"{{ {PIXELS}",
        f"type 5 {PIXELS}",
        f"Type 0 {PIXELS}\nand more.",
        f"```\ntype 3 {PIXELS}\n```",
        f"Not {PIXELS} but\n```\nClick 7.\n```",
        f"```\npress ctrl+s\n```\n{PIXELS}",
        '{"action_type": "CLICK", "x": -1, "y": 1}',
        '{"action_type": "CLICK", "x": NaN, "y": 1}',
        '{"action_type": "CLICK", "x": true, "y": "1"}',
        '{"action_type": "CLICK", "parameters": 7}',
        '{"action_type": "HOTKEY", "keys": ["ctrl", "s"], "x": 3, "y": 4}',
        '{"action_type": ["CLICK"], "x": 3, "y": 4}',
        '{"name": "computer_use", "arguments": {"action": "type", "text": "a", "coordinate": [3, 4]}}',
        '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [1]}}',
    ],
)
def test_an_action_without_a_place_points_nowhere(action):
    done = reply.read(action, SCREEN)
    placed = not isinstance(done, Refusal) and not done.number and done.x is not None
    assert not placed or done.x >= SCREEN[0]
    assert point(action, [known(SHOWN[0])]) is None
    assert point(PIXELS, []) is None
    assert point(PIXELS, [DAMAGED]) is None


@pytest.mark.parametrize("name", ["LONGEST", "_CALL", "_FENCED"])
def test_what_the_page_repeats_of_the_reader_of_replies_is_the_same(name):
    assert getattr(screens, name) == getattr(reply, name)
    assert screens.GRID == computer_use.GRID


def run_of(folder: Path) -> list[Any]:
    """Two steps; three pictures, of which one cannot be read in another rollout."""
    store = ImageStore(folder)
    store.add(SHOWN)
    seen = [[known(image)] for image in SHOWN]
    steps = [
        {**step(k, SAME), "action": action, "point": point(action, seen[k])}
        for k, action in enumerate((CLICK, PIXELS))
    ]
    lost = rollout(1, SAME, steps=[], screens=[[DAMAGED]])
    files = {image.sha256: store.path(image.sha256) for image in SHOWN}
    return [page(0, [group(3, [rollout(0, SAME, steps=steps, screens=seen), lost])], pictures=files)]


@pytest.fixture(scope="module")
def addresses(server, tmp_path_factory) -> dict[str, str]:
    folder, url = server
    pages = run_of(tmp_path_factory.mktemp("store"))
    made(folder / "seen", pages)
    made(folder / "seen.html", pages, single=True)
    return {"folder": f"{url}/seen/", "single": (folder / "seen.html").as_uri()}


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["folder", "single"])
@pytest.mark.parametrize("width", [390, 1400])
def test_each_step_shows_the_screen_with_the_click_on_it(addresses, tab, look, settled, kind, width):
    tab.set_viewport_size({"width": width, "height": 844})
    look(f"{addresses[kind]}#i=0&s=3&r=0&t=1")
    tab.evaluate("for (const image of document.images) image.loading = 'eager'")
    settled("[...document.images].every(image => image.complete && image.naturalWidth === 640)")
    assert len(tab.query_selector_all("#rollout img")) == 3
    assert tab.locator("#rollout .point").count() == 2, "the picture after the last step has no action"
    for k, (x, y) in enumerate([(250 / 999, 750 / 999), (0.5, 0.25)]):
        image = tab.locator(f"#step-{k} img").bounding_box()
        spot = tab.locator(f"#step-{k} .point").bounding_box()
        assert spot["x"] + spot["width"] / 2 == pytest.approx(image["x"] + x * image["width"], abs=1.5)
        assert spot["y"] + spot["height"] / 2 == pytest.approx(image["y"] + y * image["height"], abs=1.5)
    said = tab.inner_text("#step-1 figcaption")
    assert said == "Seen before step 1, 640 x 480 pixels; its action points at 320, 120"
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.problems == []


@pytest.mark.integration
def test_a_picture_that_cannot_be_read_is_said_as_text(addresses, tab, look):
    look(f"{addresses['folder']}#i=0&s=3&r=1")
    assert f"A picture cannot be shown: {DAMAGED['problem']}" in tab.inner_text("#rollout")
    assert tab.query_selector_all("#rollout img, #rollout b") == []
    assert tab.problems == []


@pytest.mark.integration
def test_axe_finds_nothing_serious(addresses, tab, look):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="needs: pip install 'rlanything[dev]'"
    )
    look(f"{addresses['folder']}#i=0&s=3&r=0")
    found = axe.Axe().run(tab).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] != "minor"] == []


def test_a_page_with_pictures_may_be_replaced_and_one_with_a_picture_of_mine_not(server, tmp_path):
    place = tmp_path / "page"
    made(place, run_of(tmp_path / "store"))
    assert sites.is_folder(place)
    assert len(list((place / "data/pictures").iterdir())) == len(SHOWN)
    (place / "data/pictures/holiday.png").write_bytes(SHOWN[0].png)
    assert not sites.is_folder(place)


@pytest.mark.integration
def test_pictures_of_a_stored_run_are_in_its_page(project, tmp_path):
    """The records of a finished run name a picture that is there, and one that is not."""
    for name in ("runs", "provenance"):
        shutil.copytree(project / name, tmp_path / name)
    run = tmp_path / "runs/full/seed-0"
    ImageStore(run / "images").add([SHOWN[0]])
    for file in (run / "rollouts").glob("*.jsonl.gz"):
        records = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
        for record in records:
            record["trajectory"]["first_images"] = [SHOWN[0].sha256]
            for taken in record["trajectory"]["steps"]:
                taken["images"] = ["1" * 64]
        text = "".join(json.dumps(record) + "\n" for record in records)
        file.write_bytes(gzip.compress(text.encode()))
    export("full", tmp_path / "page", root=tmp_path, environment=False)
    (picture,) = (tmp_path / "page/data/pictures").iterdir()
    assert picture.read_bytes() == SHOWN[0].png
    first = read(tmp_path / "page", "iterations/0")[0]["rollouts"][0]
    assert first["screens"][0] == [known(SHOWN[0])]
    assert all(one["problem"] for seen in first["screens"][1:] for one in seen)
    assert all("images" not in taken and taken["point"] is None for taken in first["steps"])
