"""What tests of web pages share: expert runs, scripts in a page, the browser's processes."""

from __future__ import annotations

import asyncio
import io
import json
import random
from typing import Any

import psutil
from PIL import Image as Pixels

from envs.computer import short
from envs.computer.actions import Action
from envs.web.browser.pool import Pool
from envs.web.browser.view import View
from envs.web.family import WebFamily
from envs.web.kinds.table import KINDS
from envs.web.play.episode import Episode, Setting
from envs.web.play.text import STYLES
from rlanything.core.images import Image

NEAR = (
    "click-button",
    "click-tab-2-easy",
    "click-checkboxes",
    "enter-text",
    "email-inbox-delete",
    "click-test",
)
FAR = ("click-link", "login-user", "click-tab-2")


def small(**changed: Any) -> WebFamily:
    return WebFamily(**{"kinds": NEAR, "ood_kinds": FAR, **changed})


def at_start(pool: Pool, kind: str, seed: str, style: str = "plain") -> Episode:
    return Episode(pool, Setting(KINDS[kind], seed), STYLES[style])


def suits(pool: Pool, kind: str, seed: str) -> bool:
    """Whether `draw_tasks` would take this page."""
    if not KINDS[kind].asks_for(pool.play(kind, seed, []).instruction):
        return False
    clear = KINDS[kind].clear
    return clear is None or clear(at_start(pool, kind, seed).scene)


def played(episode: Episode, rng: random.Random, most: int = 30) -> list[str]:
    """The commands of an expert that draws among the good ones, until the episode is over."""
    commands: list[str] = []
    while not episode.done and len(commands) < most:
        good = sorted(episode.setting.kind.good(episode.scene))
        assert good, f"a dead end after {commands}: {episode.view}"
        commands.append(rng.choice(good))
        assert commands[-1] in episode.commands.values(), f"{commands[-1]} is not admissible"
        episode.step(commands[-1])
    return commands


def act(text: str) -> dict[str, Any]:
    found = short.parse(text)
    assert isinstance(found, Action)
    return found.to_json()


def shows(pool: Pool, kind: str, *texts: str, seed: str = "1", picture: bool = False) -> View:
    return pool.play(kind, seed, [act(text) for text in texts], picture=picture)


def evaluate(pool: Pool, kind: str, script: str, argument: Any = None) -> Any:
    """What a script returns in the page of a kind that was used last."""
    assert pool._tabs is not None
    work = pool._tabs.of(kind)[-1].page.evaluate(script, argument)
    return asyncio.run_coroutine_threadsafe(work, pool._loop).result(20)


def clicked(x: int, y: int) -> str:
    """A click at a place, as OSWorld's actions are written."""
    return json.dumps({"action_type": "CLICK", "x": x, "y": y})


def pixels(picture: Image) -> Pixels.Image:
    """A picture, decoded."""
    return Pixels.open(io.BytesIO(picture.png)).convert("RGB")


def forget(pool: Pool) -> None:
    """Have every view made again."""
    pool._views.clear()


def browsers() -> list[psutil.Process]:
    """The browser processes that this process started, the main ones first."""
    mine = psutil.Process().children(recursive=True)
    return [child for child in mine if "chrom" in child.name()]
