"""The pictures of the report's page in docs/results.md, after `make repro`:

python -m benchmarks.pages.report
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages.browser import opened
from rlanything.core.errors import ConfigError

PAGE, FOLDER = Path("report/index.html"), Path("docs/results")
SHOTS: Mapping[str, tuple[str, int, str]] = {
    "page": ("", 1200, "light"),
    "phone": ("#reward-hacking", 390, "dark"),
}
"""Name of the picture -> the section that it begins with, its width in pixels, and the colours."""


def main(argv: Sequence[str] | None = None) -> int:
    """Take every picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", nargs="?", type=Path, default=PAGE, help=f"default: {PAGE}")
    parser.add_argument("--output", type=Path, default=FOLDER, metavar="DIR", help=f"default: {FOLDER}")
    args = parser.parse_args(argv)
    try:
        if not args.page.is_file():
            raise ConfigError(f"{args.page}: no such file; make it with `rlanything report`")
        with opened() as browser:
            args.output.mkdir(parents=True, exist_ok=True)
            for name, shot in SHOTS.items():
                take(browser, args.page, shot, args.output / f"{name}.png")
    except ConfigError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    return 0


def take(browser: Any, page: Path, shot: tuple[str, int, str], file: Path) -> None:
    """One picture."""
    section, width, colours = shot
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=colours)
    tab = context.new_page()
    tab.goto(page.resolve().as_uri() + section)
    tab.wait_for_load_state()
    tab.screenshot(path=str(file))
    print(f"{file}: {file.stat().st_size // 1024} KB", flush=True)
    context.close()


if __name__ == "__main__":
    sys.exit(main())
