"""From a run's name to a folder in another tool's format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rlanything.core.errors import ConfigError, unknown
from rlanything.exports import place as places
from rlanything.exports.about import card
from rlanything.exports.formats import FORMATS, Format
from rlanything.exports.reading import Reader, Selection
from rlanything.exports.template import template_of
from rlanything.rewards.kind import name_of
from rlanything.rollouts import runs
from rlanything.rollouts.runs import NamedRun
from rlanything.view.environment import knowledge

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

    environment: play the episodes again to learn which steps were good (`view.environment`).
    Raises `ConfigError` for an unknown run, format, filter or number, for a place that holds something else, and where
    nothing is as asked for. Then nothing is written."""
    if kind not in FORMATS:
        raise ConfigError(f"--format {kind}: {unknown(kind, FORMATS)}")
    run, _ = runs.find(name, root)
    numbers = selection.check(run, environment)
    _require_kind(run, kind, FORMATS[kind])
    output = places.free(place)
    known = knowledge(run, root, asked=environment)
    reader = Reader(run, selection, template_of(run), known)
    with places.whole(output) as folder:
        counts, front = FORMATS[kind].write(folder, reader, numbers)
        (folder / CARD).write_text(card(kind, reader, counts, front), encoding="ascii")
    return Made(output.place, {**reader.counts, **counts}, list(reader.notes))


def _require_kind(run: NamedRun, kind: str, found: Format) -> None:
    if found.votes and name_of(run.terms) != "votes":
        others = ", ".join(name for name, one in FORMATS.items() if not one.votes)
        raise ConfigError(
            f"--format {kind}: needs votes on steps, and the reward model of {run.name} writes tests; others: {others}"
        )
