"""How long `rlanything view` takes to show a large run and to search it, in a real browser.

    python -m benchmarks.pages.speed full/seed-0 --root . --rollouts 100000

The iterations of a real run are repeated under new numbers until there are so many rollouts. Each measurement is
made in a new browser context, so nothing is in a cache of the browser. First view: from the navigation until list, task
and steps are drawn. Search: from the last letter until the list is drawn, with the files of the words not yet loaded.
Distributions: from opening them until the bars are drawn. Bar: from a click on one until list and bars are drawn.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.pages.browser import opened, served
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.rollouts import runs, select
from rlanything.rollouts.environment import knowledge
from rlanything.view.facts import facts
from rlanything.view.history import history
from rlanything.view.iteration import IterationPage, iteration_page
from rlanything.view.writing import Source, free, write

TIMES = 5
PATIENCE_MS = 120_000
SEARCHES = ("spatula", "put clean", "you are", "zzz")
"""A seldom word, two frequent ones, two in every rollout, and one that is nowhere."""


def repeated(pages: Sequence[IterationPage], rollouts: int) -> Iterator[IterationPage]:
    """The pages again and again, renumbered, until they have so many rollouts."""
    held = 0
    for number in count():
        page = pages[number % len(pages)]
        yield replace(page, iteration=number)
        held += sum(len(group["rollouts"]) for group in page.groups)
        if held >= rollouts:
            return


def first_view(browser: Any, url: str) -> float:
    """Seconds until the page shows list, task and steps."""
    tab = browser.new_context().new_page()
    tab.goto(url, wait_until="commit")
    tab.wait_for_selector("body[data-shown]", state="attached", timeout=PATIENCE_MS)
    taken: float = tab.evaluate("performance.getEntriesByName('shown')[0].startTime") / 1000
    tab.context.close()
    return taken


def search(browser: Any, url: str, words: str) -> tuple[float, str]:
    """Seconds until the list of what was found is drawn, and what the page says of it."""
    tab = browser.new_context().new_page()
    tab.goto(url)
    tab.wait_for_selector("body[data-shown]", state="attached", timeout=PATIENCE_MS)
    taken: float = tab.evaluate(_SEARCH, words) / 1000
    said: str = tab.inner_text("#shown")
    tab.context.close()
    return taken, said


def bars(browser: Any, url: str) -> tuple[float, float, str]:
    """Seconds until the distributions are drawn, seconds of a click on a bar, and what the page says after it."""
    tab = browser.new_context().new_page()
    tab.goto(url)
    tab.wait_for_selector("body[data-shown]", state="attached", timeout=PATIENCE_MS)
    opened_s: float = tab.evaluate(_DISTRIBUTIONS) / 1000
    clicked_s: float = tab.evaluate(_BAR) / 1000
    said: str = tab.inner_text("#shown")
    tab.context.close()
    return opened_s, clicked_s, said


_DISTRIBUTIONS = """() => new Promise(done => {
  const began = performance.now(), fold = document.getElementById('bars');
  fold.addEventListener('toggle', () => requestAnimationFrame(() => done(performance.now() - began)));
  fold.open = true;
})"""
_BAR = """() => new Promise(done => {
  const began = performance.now();
  new MutationObserver((_, seen) => {
    seen.disconnect();
    requestAnimationFrame(() => done(performance.now() - began));
  }).observe(document.getElementById('chosen'), {childList: true});
  document.querySelector('[data-name=outcome] .bar').click();
})"""
_SEARCH = """words => new Promise(done => {
  const began = performance.now();
  const drawn = () => requestAnimationFrame(() => done(performance.now() - began));
  new MutationObserver((_, seen) => { seen.disconnect(); drawn(); })
    .observe(document.getElementById('shown'), {childList: true, characterData: true, subtree: true});
  const box = document.getElementById('words');
  box.value = words;
  box.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run_name", metavar="RUN")
    parser.add_argument("--root", type=Path, default=Path(), metavar="DIR", help="project; default: here")
    parser.add_argument("--rollouts", type=int, default=100_000, metavar="N")
    args = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "view"
            make(args.run_name, args.root.resolve(), args.rollouts, place)
            measure(place)
    except ConfigError as error:
        print(f"view: {error}", file=sys.stderr)
        return 2
    return 0


def make(name: str, root: Path, rollouts: int, place: Path) -> None:
    """Write the page, and print what it took."""
    run, _ = runs.find(name, root)
    known = knowledge(run, run.root)
    began = time.monotonic()
    pages = [iteration_page(run, k, known) for k in select.with_rollouts(run)]
    real = sum(len(group["rollouts"]) for page in pages for group in page.groups)
    print(f"read {real:,} rollouts of {safe(run.name)} in {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    made = write(
        free(place, False), [Source(facts(run), repeated(pages, rollouts), history(run.stored.buffers))]
    )
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file()) / 1e6
    index = (place / "data/index.json.gz").stat().st_size / 1e6
    print(
        f"wrote {made.rollouts[0]:,} rollouts of {made.iterations[0]} iterations in {time.monotonic() - began:.1f} s: "
        f"{size:.0f} MB, index {index:.1f} MB",
        flush=True,
    )


def measure(place: Path) -> None:
    """Print the times, each as the median and the worst of `TIMES`."""
    here = machine()
    with served(place) as url, opened() as browser:
        _show("first view", [first_view(browser, url) for _ in range(TIMES)])
        for words in SEARCHES:
            found = [search(browser, url, words) for _ in range(TIMES)]
            _show(f"search {words!r}", [taken for taken, _ in found], found[0][1])
        drawn = [bars(browser, url) for _ in range(TIMES)]
        _show("distributions", [taken for taken, _, _ in drawn])
        _show("bar 'no success'", [taken for _, taken, _ in drawn], drawn[0][2])
        print(f"chromium {browser.version}; {here['cpu']}, {here['cores']} cores at load {here['load']}")


def _show(name: str, taken: Sequence[float], said: str = "") -> None:
    print(
        f"{name:<22} {statistics.median(taken):6.2f} s  worst {max(taken):6.2f} s  {said}".rstrip(),
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
