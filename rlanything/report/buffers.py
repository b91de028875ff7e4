"""buffers.md and its pages: each adapting run's first buffer compared with its last."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.buffer.views import diff
from rlanything.buffer.views.compare.html import diff_html
from rlanything.buffer.views.compare.markdown import diff_markdown
from rlanything.config import Config
from rlanything.report.results.curves import Curves

INTRODUCTION = (
    "# Task buffers, first against last\n\n"
    "One section for each run of an arm that adapts its tasks. The pages in [buffers](buffers) list every slot and can "
    "be filtered and sorted. The same by hand: `rlanything buffer diff runs/<arm>/seed-<n>`.\n\n"
)


@dataclass(frozen=True)
class Change:
    """One run's comparison; `page` is what `buffer.views.diff` returns."""

    run: str
    page: dict[str, Any]

    @property
    def file(self) -> str:
        """Name of its page in report/buffers/."""
        return file_name(self.run)


def file_name(run: str) -> str:
    """Name of the page of a run, e.g. of full/seed-0, in report/buffers/."""
    return run.replace("/", "-") + ".html"


def changed_runs(config: Config, curves: Curves, root: Path) -> list[str]:
    """Every seed of an arm that adapts its tasks that was trained and has its buffer, e.g. full/seed-0."""
    arms = [name for name, arm in config.arms.items() if arm.adapt and name in curves]
    trained = [f"{arm}/seed-{seed}" for arm in arms for seed in sorted(curves[arm])]
    return [run for run in trained if (root / "runs" / run / "buffer").is_dir()]


def changes(runs: Iterable[str], root: Path) -> list[Change]:
    """The comparisons of these runs. Raises `TaskBufferError` for a damaged buffer."""
    return [Change(run, diff(f"runs/{run}@0", f"runs/{run}", root=root)) for run in runs]


def buffer_run(config: Config, curves: Curves) -> str:
    """The run of an adapting arm whose buffer is shown as an example, relative to the project; '' when none was run."""
    adapting = [arm for arm, switches in config.arms.items() if switches.adapt]
    for arm in sorted(adapting, key=lambda a: (a != "full", a)):
        for seed in curves.get(arm, {}):
            return f"runs/{arm}/seed-{seed}"
    return ""


def markdown(found: list[Change]) -> str:
    """report/buffers.md."""
    sections = [
        f"{diff_markdown(change.page)}\n[{change.run} as a page](buffers/{change.file})\n" for change in found
    ]
    return INTRODUCTION + ("\n".join(sections) if found else "No arm that adapts its tasks was trained.\n")


def pages(found: list[Change]) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of every page."""
    for change in found:
        yield change.file, diff_html(change.page)
