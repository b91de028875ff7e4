"""From a run's folder to a page: read iteration by iteration, so that memory holds one of them and the index."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rlanything.buffer.views.find.places import short_name
from rlanything.core.errors import ConfigError
from rlanything.core.types import Json
from rlanything.rollouts import runs, select
from rlanything.rollouts.environment import Knowledge, knowledge
from rlanything.rollouts.runs import NamedRun
from rlanything.view.facts import facts
from rlanything.view.history import history
from rlanything.view.iteration import IterationPage, iteration_page
from rlanything.view.notes import read_notes
from rlanything.view.writing import Made, Source, free, write

REPORTED_S = 5.0


def export(
    name: str,
    place: Path,
    *,
    root: Path = Path(),
    single: bool = False,
    environment: bool | None = None,
    against: str | None = None,
    notes: Path | None = None,
) -> Made:
    """Write the run `name` of project `root` as a page: a folder, or with `single` one file.

    environment: play the episodes again; None: where the environment is the project's (see `rollouts.environment`).
    against: another run beside it, to be compared with. notes: a file of notes on the first run, as a page exports it.
    Raises `ConfigError` before anything is written for an unknown run, one without rollouts, notes that cannot be read
    or are of another run, and a place that holds something else."""
    names = [name] if against is None else [name, against]
    meant = [runs.find(one, root) for one in names]
    found = [run for run, _ in meant]
    if len({run.stored.folder.resolve() for run in found}) < len(found):
        raise ConfigError(
            f"--against {against}: is the run {name} itself; its iterations are compared on its own page"
        )
    wanted = [select.with_rollouts(run) for run in found]
    about = [facts(run) for run in found]
    if len({run.name for run in found}) < len(found):  # as of two workspaces
        about = [
            said | {"run": short_name(run.stored.folder, root)}
            for run, said in zip(found, about, strict=True)
        ]
    kept = read_notes(notes, about[0]) if notes else []
    output = free(place, single)
    parts = zip(found, wanted, about, strict=True)
    sources = [
        _source(run, knowledge(run, root, asked=environment), iterations, said)
        for run, iterations, said in parts
    ]
    made = write(output, sources, single=single, notes=kept)
    shown = {run.name for run in found}
    made.others = [one for _, every in meant for one in every[1:] if one not in shown]
    return made


def _source(run: NamedRun, known: Knowledge, iterations: Sequence[int], about: Mapping[str, Json]) -> Source:
    pages = (iteration_page(run, k, known) for k in iterations)
    return Source(about, _counted(pages, run.name, len(iterations)), history(run.stored.buffers))


def _counted(pages: Iterator[IterationPage], name: str, count: int) -> Iterator[IterationPage]:
    """The same pages; how many are done is said now and then."""
    said = time.monotonic()
    for done, page in enumerate(pages, 1):
        if time.monotonic() - said > REPORTED_S:
            said = time.monotonic()
            print(f"view: {done} of {count} iterations of {name}", file=sys.stderr, flush=True)
        yield page
