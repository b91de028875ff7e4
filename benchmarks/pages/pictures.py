"""The pictures of docs/view.md, from pages that `rlanything view` wrote of the two recorded experiments:

rlanything view full --against policy --output /tmp/votes
rlanything --root .rla/coding-default view full --output /tmp/tests
python -m benchmarks.pages.pictures /tmp/votes /tmp/tests
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pages.browser import opened, served
from rlanything.core.errors import ConfigError

FOLDER = Path("docs/view")


@dataclass(frozen=True)
class Shot:
    """page: of which run. found: what its address asks for. key: what is pressed then.

    at: what the picture begins with. width: in pixels."""

    page: str
    found: str = ""
    key: str = ""
    at: str = ""
    width: int = 1200
    colours: str = "light"


SHOTS: Mapping[str, Shot] = {
    "rollout": Shot("votes", "f=disputed,against,trains"),
    "steps": Shot("votes", "f=disputed,against,trains", at=".step:has(.vote.good):has(.vote.bad)"),
    "beside": Shot("votes", "q=mug clean&f=failed", key="c", at="#side-by-side"),
    "bars": Shot("votes", "h=outcome_-1_0"),
    "search": Shot("votes", "q=mug clean&f=failed", colours="dark"),
    "programs": Shot("tests", "f=against,failed", at="#task h2"),
    "phone": Shot("votes", width=390),
}
"""By the picture's name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Take every picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("votes", type=Path, metavar="VOTES", help="page of a run with votes on steps")
    parser.add_argument("tests", type=Path, metavar="TESTS", help="page of a run with unit tests")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="DIR", help=f"default: {FOLDER}")
    args = parser.parse_args(argv)
    try:
        with opened() as browser:
            args.output.mkdir(parents=True, exist_ok=True)
            for name, shot in SHOTS.items():
                with served(getattr(args, shot.page)) as url:
                    take(browser, url, shot, args.output / f"{name}.png")
    except ConfigError as error:
        print(f"pictures: {error}", file=sys.stderr)
        return 2
    return 0


def take(browser: Any, url: str, shot: Shot, file: Path) -> None:
    """One picture: what `shot` asks for is found, and the first rollout of the list is opened."""
    context = browser.new_context(viewport={"width": shot.width, "height": 800}, color_scheme=shot.colours)
    tab = context.new_page()
    tab.goto(f"{url}#{shot.found}")
    tab.wait_for_selector("body[data-shown]", state="attached")
    if shot.found:
        tab.click("#list .marks a:not(.off)")
        tab.wait_for_selector(f"body[data-shown='{tab.evaluate('location.hash')}']", state="attached")
    if shot.key:
        tab.keyboard.press(shot.key)
        tab.wait_for_selector(f"body[data-shown='{tab.evaluate('location.hash')}']", state="attached")
    if shot.at:
        tab.evaluate("at => document.querySelector(at).scrollIntoView()", shot.at)
    tab.screenshot(path=str(file))
    print(f"{file}: {file.stat().st_size // 1024} KB", flush=True)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
