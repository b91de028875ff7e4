"""The parts of a page from the iterations of its runs: written one iteration at a time, and whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rlanything.core.errors import ConfigError
from rlanything.core.printable import safe
from rlanything.core.types import Json
from rlanything.files.outputs import Output, output
from rlanything.view.filters import FILTERS
from rlanything.view.history import FILES as HISTORY_FILES
from rlanything.view.iteration import IterationPage
from rlanything.view.rows import STATUSES, Rows
from rlanything.view.site import BESIDE, Site, is_folder, is_single
from rlanything.view.words import FILES, Words

MOST_MB = 64
"""The largest single file: a browser reads it whole before it shows anything."""
_OTHER = "exists and is no page of `rlanything view`, or holds more than one"


@dataclass(frozen=True)
class Source:
    """What a page is made of. about: `facts.facts`. past: `history.history`."""

    about: Mapping[str, Json]
    pages: Iterable[IterationPage]
    past: Iterable[tuple[int, Json]]


@dataclass
class Made:
    """What was written. runs, rollouts, iterations: of each run. notes: what could not be shown.

    others: further runs that the names mean, which are not on the page."""

    place: Path
    runs: list[str] = field(default_factory=list)
    rollouts: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)


def free(place: Path, single: bool) -> Output:
    """The place of a page: a folder, or with `single` a file. Only a page that was made here is replaced.

    Raises `ConfigError` for a place that holds something else."""
    return output(place, _not_a_file if single else _not_a_folder)


def _not_a_file(place: Path) -> str:
    if place.is_dir():
        return "is a folder; name a file, e.g. view.html"
    return "" if is_single(place) else f"{_OTHER}; name another file"


def _not_a_folder(place: Path) -> str:
    return "" if is_folder(place) else f"{_OTHER}; name another folder"


def write(
    place: Output, sources: Sequence[Source], *, single: bool = False, notes: Sequence[Json] = ()
) -> Made:
    """Write a page of a run, and of another beside it if there are two sources. It appears whole or not at all.

    place: as `free` gives it, for the same `single`. notes: on the first run, as `notes.read_notes` gives them.
    Raises `OSError`."""
    title = safe(f"rlanything view {' against '.join(str(one.about['run']) for one in sources)}")
    if single:
        with TemporaryDirectory() as folder:
            site = Site(Path(folder))
            made = _fill(site, place.place, sources, notes)
            _require_small(site)
            place.write_text(site.single(title))
    else:
        with place.folder() as folder:
            made = _fill(Site(folder), place.place, sources, notes)
            Site(folder).page(title)
    return made


def _fill(site: Site, place: Path, sources: Sequence[Source], notes: Sequence[Json]) -> Made:
    made = Made(place)
    names: list[Json] = [one.about["run"] for one in sources]
    for k, source in enumerate(sources):
        part = site.within(BESIDE) if k else site
        _fill_run(part, made, source, {"runs": names, "built_notes": [] if k else list(notes)})
    return made


def _fill_run(site: Site, made: Made, source: Source, more: Mapping[str, Json]) -> None:
    rows, words, notes, iterations = Rows(), Words(), dict[str, None](), 0
    for page in source.pages:
        site.part(f"iterations/{page.iteration}", page.groups)
        site.part(f"tokens/{page.iteration}", page.tokens)
        for name, file in page.pictures.items():
            site.picture(name, file)
        rows.add(page)
        words.add(page)
        iterations += 1
        notes |= dict.fromkeys(page.notes)
    for number, content in source.past:
        site.part(f"history/{number}", content)
    held = []
    for number, content in words.files():
        site.part(f"words/{number}", content)
        held.append(number)
    shape = {"filters": _filters(source), "statuses": STATUSES, "history": HISTORY_FILES}
    index = {**source.about, **shape, "words": held, "files": FILES, **more, "notes": list(notes)}
    site.part("index", {**index, **rows.to_json()})
    made.runs.append(str(source.about["run"]))
    made.rollouts.append(len(rows))
    made.iterations.append(iterations)
    made.notes |= notes


def _filters(source: Source) -> dict[str, Json]:
    """Of each filter its label and its meaning in this run."""
    return {name: [one.label, getattr(one, str(source.about["writes"]))] for name, one in FILTERS.items()}


def _require_small(site: Site) -> None:
    size = sum(len(data) for _, data in (*site.parts(), *site.pictures())) * 4 // 3
    if size > MOST_MB << 20:
        raise ConfigError(
            f"--single-file: {size >> 20} MB, and at most {MOST_MB} MB open well in a browser; write a folder instead"
        )
