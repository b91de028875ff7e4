"""What a seed in training prints after an iteration: warnings, and a line of progress."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlanything.core.timing import Lap
from rlanything.runs import timings
from rlanything.runs.progress import ticker

Warnings = Callable[[Sequence[Mapping[str, float | None]]], list[str]]
"""From the metrics of the iterations so far to sentences."""


class SeedProgress:
    """Prints the progress of one seed; `say` prints a line.

    name: arm and seed. total: the number of the last iteration, which measures only. panel: the one that is shown.
    """

    def __init__(
        self, name: str, total: int, panel: str, warnings: Warnings, say: Callable[[str], None]
    ) -> None:
        self._name, self._total, self._panel = name, total, panel
        self._warnings, self._say = warnings, say
        self._warned: set[str] = set()
        self.begin(0)

    def begin(self, done: int) -> None:
        """The iterations after the first `done` begin now."""
        every = 0.0 if ticker.level() == ticker.VERBOSE else ticker.EVERY_S
        self._ticker = ticker.Ticker(self._name, self._total, done - 1, every, "iteration").at_once()

    def published(self, iteration: int, lap: Lap, history: Sequence[Mapping[str, float | None]]) -> None:
        """An iteration is published. lap: its times. history: the metrics so far, its own last.

        A warning is printed when it begins to hold, and not again while it holds. Numbers in it may change.
        """
        found = {re.sub(r"\d+", "#", text): text for text in self._warnings(history)}
        for kind, text in found.items():
            if kind not in self._warned:
                self._say(f"warning: {text}")
        self._warned = set(found)
        if self._ticker.level != ticker.LIVE:
            self._ticker.tick(iteration, ", ".join(self._shown(lap, history[-1], iteration)))

    def _shown(self, lap: Lap, metrics: Mapping[str, Any], iteration: int) -> list[str]:
        parts = [
            f"{key} {metrics[key]:.3f}"
            for key in ("accuracy", "mu", f"panel/{self._panel}")
            if metrics.get(key) is not None
        ]
        parts.append(f"accepted {metrics['accepted_total']:.0f}")
        rate = timings.tokens_per_second(timings.row(iteration, lap), metrics)
        parts += [f"{rate:,.0f} tokens/s"] if rate is not None else []
        if self._ticker.level == ticker.VERBOSE:
            parts += [f"{name} {spent.wall:.1f} s" for name, spent in lap.phases.items() if "/" not in name]
        return parts
