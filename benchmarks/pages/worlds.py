"""The pictures of docs/gui.md: what agents act on, from episodes that experts play.

python -m benchmarks.pages.worlds            # both
python -m benchmarks.pages.worlds desktop    # or web
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from envs.desktop.small.expert import play
from envs.desktop.small.family import DesktopFamily
from envs.desktop.small.templates import templates
from envs.web.browser.asking import PLAY, ask
from envs.web.browser.launch import chromium, launch, pages
from envs.web.family import WebFamily
from rlanything.core.errors import RLAnythingError
from rlanything.core.types import Task

FOLDER = Path("docs/gui")
ENV = Path("experiments/env/web.yaml")
DESKTOPS = ("editor-add-line", "sheet-formula", "files-inside", "terminal-join")
"""Templates, an application each."""
PAGES = ("click-menu-2", "email-inbox-delete", "form-sequence-3", "navigate-tree")
"""Kinds of tasks on web pages; training has them."""
TILE = (512, 384)
"""Size of one desktop in the picture, pixels: half of its screen."""
PAGE = {"x": 0, "y": 0, "width": 160, "height": 210}
"""The part of a page that the task is in, pixels."""
COLOURS, GAP = 128, 8
"""Colours of a picture, and pixels between its parts."""


def main(argv: Sequence[str] | None = None) -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    worlds = {"desktop": desktops, "web": web}
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"default: {' '.join(worlds)}")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="DIR", help=f"default: {FOLDER}")
    args = parser.parse_args(argv)
    if strange := set(args.worlds) - worlds.keys():
        parser.error(f"{min(strange)}: must be one of {', '.join(worlds)}")
    try:
        for name in args.worlds or worlds:
            file = args.output / f"{name}.png"
            args.output.mkdir(parents=True, exist_ok=True)
            tiles, columns = worlds[name]()
            side_by_side(tiles, columns).save(file, optimize=True)
            print(f"{file}: {file.stat().st_size // 1024} KB", flush=True)
    except RLAnythingError as error:
        print(f"worlds: {error}", file=sys.stderr)
        return 2
    return 0


def side_by_side(tiles: Sequence[Image.Image], columns: int) -> Image.Image:
    """Tiles of one size in rows, with few colours."""
    width, height = tiles[0].width + GAP, tiles[0].height + GAP
    rows = -(-len(tiles) // columns)
    made = Image.new("RGB", (columns * width - GAP, rows * height - GAP), "white")
    for number, tile in enumerate(tiles):
        made.paste(tile, (number % columns * width, number // columns * height))
    return made.quantize(COLOURS, dither=Image.Dither.NONE)


def desktops() -> tuple[list[Image.Image], int]:
    """The screens on which experts have done their task and not yet said so. Raises `MachineError`."""
    family = DesktopFamily(worlds=1, observe="both")
    tiles = []
    for name in DESKTOPS:
        said = templates()[name].instructions(0)["evaluator1"]
        task = Task("desktop", said, {"template": name, "row": 0, "key": "evaluator1"})
        environment = family.environment()
        try:
            first = environment.reset(task, 0)
            shown = [result for _, result in play(environment, first, family.expert(task)[:-1])]
        finally:
            environment.close()
        screen = _read(shown[-1].observation.images[-1].png)
        tiles.append(screen.resize(TILE, Image.Resampling.LANCZOS))
    return tiles, 2


def web() -> tuple[list[Image.Image], int]:
    """Pages before the last action of an expert. Raises `MachineError`."""
    section = yaml.safe_load(ENV.read_text())
    family = WebFamily(section["kinds"], section["ood_kinds"], "plain")
    tasks = family.make("train", 16 * len(section["kinds"]), 0)
    first = {task.payload["kind"]: task for task in reversed(tasks)}
    taken = asyncio.run(_photographed([(first[kind], _actions(family, first[kind])) for kind in PAGES]))
    return [_read(png) for png in taken], len(PAGES)


def _actions(family: WebFamily, task: Task) -> list[dict[str, Any]]:
    """What the expert does before its last action, as the page gets it."""
    commands = [command for _, command in family.demonstrate(task, 0, 0.0)][:-1]
    environment = family.environment()
    environment.reset(task, 0)
    made: list[dict[str, Any]] = []
    for command in commands:
        made = environment.episode.next_actions(command) or made  # type: ignore[attr-defined]
        environment.step(command)
    return made


async def _photographed(episodes: Sequence[tuple[Task, Sequence[dict[str, Any]]]]) -> list[bytes]:
    """Pictures of pages after these actions, with two pixels for one."""
    driver, browser, context = await launch(chromium(None), density=2)
    try:
        taken = []
        for task, actions in episodes:
            kind = task.payload["kind"]
            page = await context.new_page()
            await page.goto((pages(None) / f"{kind}.html").as_uri(), wait_until="load")
            asked = {"seed": task.payload["seed"], "actions": list(actions), "most": 1, "longest": 1}
            await ask(page, kind, PLAY, asked)
            taken.append(await page.screenshot(clip=PAGE))
        return taken
    finally:
        await browser.close()
        await driver.stop()


def _read(png: bytes) -> Image.Image:
    return Image.open(io.BytesIO(png)).convert("RGB")


if __name__ == "__main__":
    sys.exit(main())
