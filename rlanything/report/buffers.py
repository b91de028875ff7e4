"""What became of the tasks: each adapting run's first buffer against its last, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.buffer import diff
from rlanything.buffer.compare.html import diff_html
from rlanything.buffer.compare.markdown import diff_markdown
from rlanything.report.records import Curves

INTRODUCTION = (
    "# Task buffers, first against last\n\n"
    "One section for each run of an arm that adapts its tasks. The pages in [buffers](buffers) list every slot and can "
    "be filtered and sorted. The same by hand: `rlanything buffer diff runs/<arm>/seed-<n>`.\n\n"
)


@dataclass(frozen=True)
class Change:
    """One run's comparison; `page` is what `rlanything.buffer.diff` returns."""

    run: str
    page: dict[str, Any]

    @property
    def file(self) -> str:
        """Name of its page in report/buffers/."""
        return self.run.replace("/", "-") + ".html"


def changes(curves: Curves, arms: list[str], root: Path) -> list[Change]:
    """The comparisons of every seed of `arms` that was trained. Raises `TaskBufferError` for a damaged buffer."""
    trained = [f"{arm}/seed-{seed}" for arm in arms if arm in curves for seed in sorted(curves[arm])]
    runs = [run for run in trained if (root / "runs" / run / "buffer").is_dir()]
    return [Change(run, diff(f"runs/{run}@0", f"runs/{run}", root=root)) for run in runs]


def text(found: list[Change]) -> str:
    """report/buffers.md."""
    sections = [
        f"{diff_markdown(change.page)}\n[{change.run} as a page](buffers/{change.file})\n" for change in found
    ]
    return INTRODUCTION + ("\n".join(sections) if found else "No arm that adapts its tasks was trained.\n")


def pages(found: list[Change]) -> Iterator[tuple[str, str]]:
    """(file name, HTML) of every page."""
    for change in found:
        yield change.file, diff_html(change.page)
