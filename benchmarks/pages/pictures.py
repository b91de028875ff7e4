"""The pictures of docs/view.md, from runs of two projects:

python -m benchmarks.pages.pictures --root . --coding .rla/coding-default
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages.browser import opened, served
from rlanything.core.errors import ConfigError
from rlanything.view.export import export

FOLDER = Path("docs/view")
SHOTS: Mapping[str, tuple[str, str, int, int, str]] = {
    "rollout": ("votes", "f=disputed,against", 1200, 800, "light"),
    "search": ("votes", "q=mug&f=failed", 1200, 800, "dark"),
    "programs": ("tests", "f=against", 1200, 800, "light"),
    "phone": ("votes", "", 390, 800, "light"),
}
"""name: which run, what is in its address, width, height, and colours."""


def main(argv: Sequence[str] | None = None) -> int:
    """Take every picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="project with votes on steps"
    )
    parser.add_argument("--coding", type=Path, required=True, metavar="DIR", help="project with unit tests")
    parser.add_argument("--run", default="full/seed-0", metavar="RUN", help="of both; default: full/seed-0")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="DIR", help=f"default: {FOLDER}")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind, root in (("votes", args.root), ("tests", args.coding)):
                export(args.run, Path(folder) / kind, root=root.resolve())
            with served(Path(folder)) as url, opened() as browser:
                args.output.mkdir(parents=True, exist_ok=True)
                for name, shot in SHOTS.items():
                    take(browser, url, shot, args.output / f"{name}.png")
    except ConfigError as error:
        print(f"pictures: {error}", file=sys.stderr)
        return 2
    return 0


def take(browser: Any, url: str, shot: tuple[str, str, int, int, str], file: Path) -> None:
    """One picture: the first rollout of the list, at its second step, with a chip and the tokens open."""
    kind, hash_, width, height, colours = shot
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=colours)
    tab = context.new_page()
    tab.goto(f"{url}{kind}/#{hash_}")
    tab.wait_for_selector("body[data-shown]", state="attached")
    if hash_:
        tab.click("#list .marks a:not(.off)")
        tab.wait_for_selector(f"body[data-shown='{tab.evaluate('location.hash')}']", state="attached")
    tab.screenshot(path=str(file))
    print(f"{file}: {file.stat().st_size // 1024} KB")
    context.close()


if __name__ == "__main__":
    sys.exit(main())
