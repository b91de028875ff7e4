"""The first difference of what two sides were made from, and of what became of their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.buffer.views import diff
from rlanything.buffer.views.compare.text import counts_line
from rlanything.buffer.views.find.places import short_name
from rlanything.compare.results import Group, first
from rlanything.compare.side import Arm, Side
from rlanything.core.errors import UserError
from rlanything.report.formatting import code
from rlanything.runs.provenance import changed, flat

PARTS = {"code": "source files", "inputs": "input files (tasks, models, prompts)", "panels": "panels"}
MOST_SEEDS = 8
"""Pairs of buffers that are compared; a project may have many seeds."""


def made_from(sides: Sequence[Side], group: Group) -> Iterator[str]:
    """A sentence for each side: where its record first differs from that of the first side."""
    start = first(group)
    reference = group.of[start]
    for i, arm in enumerate(group.of[start + 1 :], start + 1):
        if arm is None or reference is None:
            continue
        pair = f"{sides[start].letter} and {sides[i].letter}"
        where = f"{pair}{f', {code(group.arm)}' if group.arm else ''}"
        if arm.record is None or reference.record is None:
            yield f"{where}: one of them has no record of what it was made from."
        elif arm.record["fingerprint"] == reference.record["fingerprint"]:
            yield f"{where}: {_same(arm, reference)}"
        else:
            yield f"{where}: {_first(reference.record, arm.record)}"


def _same(arm: Arm, reference: Arm) -> str:
    """Of runs with one fingerprint: whether their results are the same bytes."""
    assert arm.record is not None
    assert reference.record is not None
    seeds = [seed for seed in arm.record["seeds"] if seed in reference.record["seeds"]]
    other = [s for s in seeds if arm.record["seeds"][s]["sha256"] != reference.record["seeds"][s]["sha256"]]
    made = "made from the same configuration, code and inputs"
    if not seeds:
        return f"{made}."
    return (
        f"{made}; {'seeds ' + ', '.join(other) + ' came out otherwise' if other else 'with the same bytes'}."
    )


def _first(one: Mapping[str, Any], two: Mapping[str, Any]) -> str:
    """How many files and panels differ, and the first of each kind."""
    found = {title: changed(flat(one[part] or {}), flat(two[part] or {})) for part, title in PARTS.items()}
    said = [f"{len(texts)} {title} differ, first {code(texts[0])}" for title, texts in found.items() if texts]
    return (
        f"{'; '.join(said)}." if said else "the same source files, inputs and panels; their settings differ."
    )


def buffers(sides: Sequence[Side], group: Group, root: Path) -> Iterator[str]:
    """What became of the tasks: how the buffers of the same seed differ, or by which command that is seen."""
    start = first(group)
    reference = group.of[start]
    for i, arm in enumerate(group.of[start + 1 :], start + 1):
        if arm is None or reference is None:
            continue
        for one, two in _pairs(reference, arm)[:MOST_SEEDS]:
            names = [_name(folder, root) for folder in (one, two)]
            yield f"{sides[start].letter} and {sides[i].letter}, {_counted(one, two, names)}"
        named = _of_revisions((sides[start], reference), (sides[i], arm), root)
        if named:
            yield f"As far as DVC has the runs: {code(f'rlanything buffer diff {named[0]} {named[1]}')}"


def _of_revisions(one: tuple[Side, Arm], two: tuple[Side, Arm], root: Path) -> list[str]:
    """The names of a run of each side, of one seed if both have one; none without a revision, or a run to name."""
    if not (one[0].revision or two[0].revision):
        return []
    seeds = [set(arm.curves) if side.revision else set(arm.folders) for side, arm in (one, two)]
    if not all(seeds):
        return []
    chosen = [min(seeds[0] & seeds[1] or of) for of in seeds]
    return [
        f"{side.name.removesuffix(f':{arm.name}')}:{arm.name}/seed-{seed}"
        if side.revision
        else _name(arm.folders[seed], root)
        for (side, arm), seed in zip((one, two), chosen, strict=True)
    ]


def _pairs(one: Arm, two: Arm) -> list[tuple[Path, Path]]:
    """The folders of the same seeds; of one seed each whatever their numbers."""
    if len(one.folders) == len(two.folders) == 1:
        return list(zip(one.folders.values(), two.folders.values(), strict=True))
    return [(one.folders[seed], two.folders[seed]) for seed in sorted(one.folders) if seed in two.folders]


def _name(folder: Path, root: Path) -> str:
    """The run by a name that `rlanything buffer` finds; absolute only outside of the project: pages are passed on."""
    folder, runs = folder.resolve(), (root / "runs").resolve()
    if folder.is_relative_to(runs):
        return folder.relative_to(runs).as_posix()
    return short_name(folder, root.resolve())


def _counted(one: Path, two: Path, names: Sequence[str]) -> str:
    command = code(f"rlanything buffer diff {names[0]} {names[1]}")
    try:
        page = diff(str(one.resolve()), str(two.resolve()), details=False)
    except UserError as error:
        said = str(error)
        for folder, name in zip((one, two), names, strict=True):
            said = said.replace(str(folder.resolve()), name)
        return f"{one.name}: their buffers cannot be compared ({code(said)})."
    return f"{one.name}: {counts_line(page)}. {command}"
