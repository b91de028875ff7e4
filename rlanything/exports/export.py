"""From a run's name to a folder in another tool's format."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlanything.compare.run.named import named
from rlanything.core.errors import ConfigError, unknown
from rlanything.exports import place as places
from rlanything.exports.about import card, card_of_all
from rlanything.exports.formats import FORMATS, Format
from rlanything.exports.reading import NothingChosen, Reader, Selection
from rlanything.exports.template import template_of
from rlanything.rewards.kind import name_of
from rlanything.rollouts import runs
from rlanything.rollouts.environment import knowledge
from rlanything.rollouts.runs import NamedRun

CARD = "README.md"
ALL = Selection()


@dataclass(frozen=True)
class Made:
    """What was written: how much of what, and what could not be had."""

    place: Path
    counts: dict[str, int]
    notes: list[str]


def export(
    name: str,
    kind: str,
    place: Path,
    *,
    selection: Selection = ALL,
    environment: bool = False,
    root: Path = Path(),
) -> Made:
    """Write rollouts of the run `name` of project `root` in the format `kind` as the folder `place`.

    A name of several seeds, such as an arm, gives all of them: each in a folder of its own inside `place`.
    environment: play the episodes again to learn which steps were good (`rollouts.environment`).
    Raises `ConfigError` for an unknown run, format, filter or number, for a place that holds something else, and where
    nothing is as asked for. Then nothing is written."""
    if kind not in FORMATS:
        raise ConfigError(f"--format {kind}: {unknown(kind, FORMATS)}")
    found, names = runs.find(name, root)
    wanted = [found] if len(names) == 1 else named(name, root)
    numbers = [selection.check(run, environment) for run in wanted]
    for run in wanted:
        _require_kind(run, kind, FORMATS[kind])
    output = places.free(place)
    readers = [
        Reader(run, selection, template_of(run), knowledge(run, root, asked=environment)) for run in wanted
    ]
    with places.whole(output) as folder:
        if len(readers) == 1:
            counts, _ = _write(folder, kind, readers[0], numbers[0])
            return Made(output.place, {**readers[0].counts, **counts}, list(readers[0].notes))
        return Made(output.place, *_write_all(folder, kind, readers, numbers))


def _write_all(
    folder: Path, kind: str, readers: Sequence[Reader], numbers: Sequence[Sequence[int]]
) -> tuple[dict[str, int], list[str]]:
    """Write each run into a folder named by its seed. The sums of the counts, and all notes.

    A run of which nothing is as asked for is left out, with a note. Raises `NothingChosen` if that is so of all."""
    sums, notes, front, said = Counter[str](), list[str](), list[str](), list[NothingChosen]()
    for reader, those in zip(readers, numbers, strict=True):
        own = folder / reader.run.stored.folder.name
        own.mkdir()
        try:
            counts, lines = _write(own, kind, reader, those)
        except NothingChosen as error:
            shutil.rmtree(own)
            said.append(error)
            notes.append(str(error))
            continue
        sums.update({**reader.counts, **counts})
        notes += [f"{reader.run.name}: {note}" for note in reader.notes]
        front = max(front, lines, key=len)
    if len(said) == len(readers):
        raise said[0]
    written = [reader.run.name for reader in readers if (folder / reader.run.stored.folder.name).is_dir()]
    (folder / CARD).write_text(card_of_all(kind, written, dict(sums), front), encoding="ascii")
    return {"runs": len(written), **sums}, notes


def _write(
    folder: Path, kind: str, reader: Reader, numbers: Sequence[int]
) -> tuple[dict[str, int], list[str]]:
    """Write one run with its card. Its counts, and the front matter of the card."""
    counts, front = FORMATS[kind].write(folder, reader, numbers)
    (folder / CARD).write_text(card(kind, reader, counts, front), encoding="ascii")
    return counts, front


def _require_kind(run: NamedRun, kind: str, found: Format) -> None:
    if found.votes and name_of(run.terms) != "votes":
        others = ", ".join(name for name, one in FORMATS.items() if not one.votes)
        raise ConfigError(
            f"--format {kind}: needs votes on steps, and the reward model of {run.name} writes tests; others: {others}"
        )
