"""From a run's folder to a page: read iteration by iteration, so that memory holds one of them and the index."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rlanything import __version__
from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.core.types import Json
from rlanything.files import atomic
from rlanything.rewards.kind import name_of
from rlanything.rollouts import runs, select
from rlanything.rollouts.runs import NamedRun
from rlanything.view.environment import knowledge
from rlanything.view.history import FILES as HISTORY_FILES
from rlanything.view.history import history
from rlanything.view.iteration import IterationPage, iteration_page
from rlanything.view.rows import FILTERS, STATUSES, Rows
from rlanything.view.site import Site, is_folder, is_single
from rlanything.view.words import FILES, Words

Parts = Iterable[tuple[int, Json]]
MOST_MB = 64
"""The largest single file: a browser reads it whole before it shows anything."""
REPORTED_S = 5.0


@dataclass
class Made:
    """What was written. notes: what could not be shown."""

    place: Path
    rollouts: int = 0
    iterations: int = 0
    notes: dict[str, None] = field(default_factory=dict)


def export(
    name: str, place: Path, *, root: Path = Path(), single: bool = False, environment: bool | None = None
) -> Made:
    """Write the run `name` of project `root` as a page: a folder, or with `single` one file.

    environment: play the episodes again; None: where the run's environment is the project's (see `view.environment`).
    Raises `ConfigError` before anything is written for an unknown run, one without rollouts, and a place that holds
    something else."""
    run, _ = runs.find(name, root)
    iterations = select.with_rollouts(run)
    _require_free(place, single)
    place = place.resolve()
    known = knowledge(run, root, asked=environment)
    pages = _counted((iteration_page(run, k, known) for k in iterations), len(iterations))
    return write(place, facts(run), pages, history(run.stored.buffers), single=single)


def facts(run: NamedRun) -> dict[str, Json]:
    """What the page says about the run as a whole."""
    terms = run.terms
    return {
        "run": run.name,
        "state": "finished" if run.finished else "in training",
        "version": __version__,
        "writes": name_of(terms),
        "lambda": terms.signals.lambda_,
        "uses_outcome": terms.arm.outcome,
        "trains_reward_model": terms.arm.train_reward,
    }


def write(
    place: Path,
    about: Mapping[str, Json],
    pages: Iterable[IterationPage],
    past: Parts,
    *,
    single: bool = False,
) -> Made:
    """Write a page from its iterations and the history of its tasks. It appears whole or not at all."""
    title = safe(f"rlanything view {about['run']}")
    if single:
        with TemporaryDirectory() as folder:
            site = Site(Path(folder))
            made = _fill(site, place, about, pages, past)
            _require_small(site)
            site.single(title, place)
    else:
        with atomic.whole(place) as folder:
            made = _fill(Site(folder), place, about, pages, past)
            Site(folder).page(title)
    return made


def _fill(
    site: Site, place: Path, about: Mapping[str, Json], pages: Iterable[IterationPage], past: Parts
) -> Made:
    made, rows, words = Made(place), Rows(), Words()
    for page in pages:
        site.part(f"iterations/{page.iteration}", page.groups)
        site.part(f"tokens/{page.iteration}", page.tokens)
        rows.add(page)
        words.add(page)
        made.iterations += 1
        made.notes |= dict.fromkeys(page.notes)
    for number, content in past:
        site.part(f"history/{number}", content)
    held = []
    for number, content in words.files():
        site.part(f"words/{number}", content)
        held.append(number)
    filters = {name: [one.label, getattr(one, about["writes"])] for name, one in FILTERS.items()}
    shape = {
        "filters": filters,
        "statuses": STATUSES,
        "history": HISTORY_FILES,
        "words": held,
        "files": FILES,
    }
    site.part("index", {**about, **shape, "notes": list(made.notes), **rows.to_json()})
    made.rollouts = len(rows)
    return made


def _counted(pages: Iterator[IterationPage], count: int) -> Iterator[IterationPage]:
    """The same pages; how many are done is said now and then."""
    said = time.monotonic()
    for done, page in enumerate(pages, 1):
        if time.monotonic() - said > REPORTED_S:
            said = time.monotonic()
            print(f"view: {done} of {count} iterations", file=sys.stderr, flush=True)
        yield page


def _require_free(place: Path, single: bool) -> None:
    """Only a page that was made here is replaced: a folder is replaced whole."""
    if place.is_symlink():
        raise ConfigError(f"--output {place}: is a link; name what it points to, or another place")
    atomic.check_writable(place.resolve().parent)
    if single and place.is_dir():
        raise ConfigError(f"--output {place}: is a folder; name a file, e.g. view.html")
    if place.exists() and not (is_single(place) if single else is_folder(place)):
        raise ConfigError(
            f"--output {place}: exists and is no page of `rlanything view`, or holds more than one; "
            f"name another {'file' if single else 'folder'}"
        )


def _require_small(site: Site) -> None:
    size = sum(len(data) for _, data in site.parts()) * 4 // 3
    if size > MOST_MB << 20:
        raise ConfigError(
            f"--single-file: {size >> 20} MB, and at most {MOST_MB} MB open well in a browser; write a folder instead"
        )
