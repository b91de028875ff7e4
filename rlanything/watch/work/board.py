"""The lines that are updated: the stage with its time left, its seeds, and other work that says how far it is."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from rlanything.core.printable import one_line
from rlanything.runs.progress.ticker import clock
from rlanything.watch import left, places, seeds, stages
from rlanything.watch.seeds import Seed
from rlanything.watch.text import tables
from rlanything.watch.text.page import in_all
from rlanything.watch.text.words import BLOCKS, NONE, PLAIN, bar, number, time_left

TICK = re.compile(r"(?P<what>[^\n]{1,80}?): (?:\w+ )?(?P<done>\d+)/(?P<total>\d+), .*\bleft\b.*")
"""A line of `runs.progress.ticker.Ticker`."""
STALE_S = 15.0
"""Work that says nothing for so long is shown no more: it has ended, or its process has."""
CUT = "..."
"""The end of a line that was cut, in ASCII."""
_MOST = 8
"""Lines of other work."""


def shortened(text: Text, width: int, characters: str = BLOCKS) -> Text:
    """The text with every line cut at `width` columns. characters: those that its terminal has, as of `Board`."""
    lines = text.split("\n")
    for line in lines:
        if line.cell_len > width and characters == PLAIN:
            # In ASCII an ellipsis would be escaped, and then it is wider than a column.
            line.truncate(max(0, width - len(CUT)), overflow="crop")
            line.append(CUT[:width])
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines)


class Board:
    """The state of a command at work. `take` gets what it prints, `rows` are the lines to show now.

    characters: those of bars, as `watch.text.words.blocks` chooses them for a terminal.
    """

    def __init__(self, root: Path, words: str, characters: str = BLOCKS) -> None:
        self._root, self._words, self._characters = root, words, characters
        self._start = time.monotonic()
        self._last: dict[str, tuple[str, float]] = {}

    def take(self, line: str) -> str | None:
        """A line that the command printed, to be shown for good; None where it only updates another one."""
        found = TICK.fullmatch(line)
        if found is None:
            return line
        self._last.pop(found["what"], None)
        if found["done"] != found["total"]:
            self._last[found["what"]] = line, time.monotonic()
        return None

    def rows(self, width: int) -> Text:
        """The lines to show now, none longer than `width`."""
        return shortened(
            Text("\n").join(Text(line, style=style) for line, style in self._rows()), width, self._characters
        )

    def _rows(self) -> Iterator[tuple[str, str]]:
        place = places.read(places.PROJECT, self._root)
        arm = self._words.partition("--arm ")[2]
        own = [seed for seed in place.seeds if seed.arm == arm and seed.state != seeds.FINISHED]
        if not self._words.startswith("train "):
            own = []
        for seed in own:
            yield self._seed(seed), ""
        now = time.monotonic()
        for line, at in list(self._last.values())[-_MOST:]:
            if now - at < STALE_S:
                yield one_line(line), ""
        yield self.stage(place), "bold"

    def _seed(self, seed: Seed) -> str:
        """Everything about a seed that fits a line, the most important first."""
        panel = tables.panel_of([seed])
        parts = [f"{one_line(seed.name)} {bar(seed.share, 10, self._characters)}"]
        parts.append(f"{tables.iteration(seed)} {tables.now(seed)}")
        if seed.state == seeds.RUNNING:
            parts.append(f"{time_left(seed.left())} left")
        if (rate := tables.rate(seed)) != NONE:
            parts.append(f"{rate} tokens/s")
        for key, name in (("accuracy", "accuracy"), (panel, panel.removeprefix("panel/")), ("mu", "mu")):
            if key and (value := tables.newest(seed.rows, key)) is not None:
                parts.append(f"{one_line(name)} {number(value)}")
        if (accepted := tables.newest(seed.rows, "accepted_total")) is not None:
            parts.append(f"accepted {accepted:.0f}")
        return ", ".join(parts)

    def stage(self, place: places.Place | None = None) -> str:
        """How long the command and the whole pipeline will take. place: what was read of it just now."""
        place = place or places.read(places.PROJECT, self._root)
        spent = time.monotonic() - self._start
        parts = [f"{self._words}: {clock(spent)} so far"]
        mine = next((one for one in place.stages if one.words == self._words), None)
        if mine is not None and mine.left is not None and mine.state == stages.RUNNING:
            parts.append(f"{time_left(mine.left)} left")
        whole = left.of_all(place.stages)
        if place.whole and whole.commands > 1:
            parts.append(in_all(whole))
        return one_line(", ".join(parts))
