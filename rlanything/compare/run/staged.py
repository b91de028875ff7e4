"""Some runs of one arm as a project of their own, with their seeds only, so that what reads a project reads them.

A temporary folder has links to the rollouts, and copies of what differs. A run in training has the files that it will
have when it is finished, of the iterations that are published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rlanything.buffer.storage import FOLDER as BUFFER
from rlanything.buffer.storage import START
from rlanything.buffer.views.find.live import live_run
from rlanything.compare.run.named import seed_of
from rlanything.config import BASE, BASE_COOLED
from rlanything.files.reader import read_object
from rlanything.files.records import read_iteration
from rlanything.report.results.evaluations import EVALUATE
from rlanything.rollouts.runs import NamedRun
from rlanything.runs.layout import Layout

ROLLOUTS = "rollouts"


@contextmanager
def alone(found: Sequence[NamedRun]) -> Iterator[Path]:
    """The project of these runs of one arm. Raises `FileError` for a file that cannot be read."""
    root, arm = found[0].root, found[0].arm
    with TemporaryDirectory(prefix="rlanything-") as folder:
        place = Path(folder)
        for run in found:
            _run(run, Layout(place).run(arm, seed_of(run)))
        if found[0].finished:
            seeds = {str(seed_of(run)) for run in found}
            for name in (BASE, BASE_COOLED, arm):
                _evaluation(Layout(root).evaluation(name), Layout(place).evaluation(name), seeds)
        yield place


def _run(run: NamedRun, place: Path) -> None:
    folder = run.stored.folder.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    live = None if run.finished else live_run(folder)
    if live is None:
        place.symlink_to(folder)
        return
    (place / ROLLOUTS).mkdir(parents=True)
    published = []
    for path, places in live.places.items():
        if path.parent.name == ROLLOUTS:
            (place / ROLLOUTS / path.name).symlink_to(places[0])
        elif path.parent.name == BUFFER and path.name.startswith("iter_") and path.name != START:
            published.append(places[0].parent)
    rows = [read_iteration(one / "metrics.json") for one in sorted(published)]
    (place / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _evaluation(path: Path, place: Path, seeds: set[str]) -> None:
    """The file with some seeds only; none where it has none of them."""
    if not path.is_file():
        return
    found: dict[str, Any] = read_object(path, f"make it again with `{EVALUATE}`")
    every = found.get("seeds")
    kept = {seed: of for seed, of in every.items() if seed in seeds} if isinstance(every, dict) else every
    if kept:
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps({**found, "seeds": kept}))
