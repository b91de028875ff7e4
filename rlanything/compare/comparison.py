"""Everything that the page and the terminal say of a comparison, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rlanything.compare.results import Difference, Group, Why, differences, first, groups
from rlanything.compare.settings import Setting, differing
from rlanything.compare.side import Side
from rlanything.config import CONTROLS, Config
from rlanything.files.project import PARAMS
from rlanything.planning import check
from rlanything.report.contents import Contents, contents_of
from rlanything.report.formatting import code, interval, p_text
from rlanything.report.results.metrics import Metric
from rlanything.report.results.paper import ORDER
from rlanything.rewards.kind import name_of


@dataclass(frozen=True)
class Compared:
    """Two or more sides. config: of the first side that this version can read; it says which metrics there are."""

    root: Path
    sides: Sequence[Side]
    groups: Sequence[Group]
    contents: Contents
    config: Config
    differences: Sequence[Difference]
    settings: Sequence[Setting]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those that are compared, in the order of the tables."""
        return self.contents.metrics

    @property
    def single(self) -> bool:
        """Whether each side is one arm, so that a figure can show them all."""
        return len(self.groups) == 1 and all(len(side.arms) == 1 for side in self.sides)

    @property
    def comparable(self) -> bool:
        """Whether the environments are the same, as far as they are known."""
        return len({side.environment for side in self.sides if side.environment}) <= 1


def compare(sides: Sequence[Side], root: Path) -> Compared:
    """The comparison of these sides. Raises `ConfigError` where no arm can be compared."""
    found = groups(sides)
    config = next((side.config for side in sides if side.config is not None), None)
    if config is None:
        config = check.read(root / PARAMS, root, engine=False)
    contents = replace(contents_of(config), signals=(), metrics=_metrics(config, sides))
    return Compared(
        root, sides, found, contents, config, differences(found, contents.metrics), differing(sides)
    )


def _metrics(config: Config, sides: Sequence[Side]) -> tuple[Metric, ...]:
    """Those of `config`, then what other sides measure besides on panels of their own; of one kind of reward model."""
    kind = name_of(config)
    configs = [config, *(side.config for side in sides if side.config is not None)]
    every = [metric for of in configs if name_of(of) == kind for metric in contents_of(of).metrics]
    first = {metric.name: metric for metric in reversed(every)}  # of one name that of the first side
    ordered = [first[name] for name in dict.fromkeys(metric.name for metric in every)]
    return tuple(sorted(ordered, key=lambda metric: (not metric.is_success, not metric.is_share)))


def headline(found: Compared) -> str:
    """The result in one sentence: how far the second side is from the first, in success on the first panel."""
    rows = [row for row in found.differences if row.metric.is_success and row.group.arm not in CONTROLS]
    tested = [row for row in rows if row.found is not None]
    if not tested:
        why = rows[0].why if rows else "no arm was measured on both sides"
        return f"Nothing was tested, so it is open which side succeeds more often: {why}."
    if all(row.same for row in found.differences):
        return f"{' and '.join(code(side.label) for side in found.sides)} have the same results."
    arm = next(
        (arm for arm in reversed(ORDER) if any(row.group.arm == arm for row in tested)), tested[0].group.arm
    )
    row = next(row for row in tested if row.group.arm == arm)
    return sentence(found, row)


def sentence(found: Compared, row: Difference) -> str:
    """A difference in words, with its test."""
    contrast, one, two = row.found, found.sides[first(row.group)], found.sides[row.side]
    assert contrast is not None
    mean = contrast.difference.mean
    relation = "equals" if mean == 0.0 else "is above" if mean > 0 else "is below"
    doubt = "" if contrast.clear or mean == 0.0 else ", no clear difference"
    arm = f" in arm {code(row.group.arm)}" if row.group.arm and not found.single else ""
    if row.same:
        return f"{code(two.label)} and {code(one.label)}{arm}: the same results, {found.contents.title(row.metric)}."
    points = interval(contrast.difference, row.metric, sign=True)
    where = f"{code(one.label)}{arm}, {found.contents.title(row.metric)}"
    return f"{code(two.label)} {relation} {where}: difference {points}, p {p_text(contrast.p)}{doubt}."


def notes(found: Compared) -> Iterator[str]:
    """What the sides lack, and what cannot be compared, one sentence each; names stand in code spans."""
    environments = {side.environment for side in found.sides if side.environment}
    if len(environments) > 1:
        each = "; ".join(f"{side.letter}: {code(side.environment)}" for side in found.sides)
        yield f"The environments differ ({each}), so tasks, accuracies and task buffers cannot be compared."
    if len({name_of(side.config) for side in found.sides if side.config is not None}) > 1:
        yield "One side votes on steps, another writes unit tests: their reward models have no metric in common."
    for side in found.sides:
        yield from (f"{code(side.label)}: {note}." for note in side.notes)
        alone = [name for name in side.arms if not any(group.arm == name for group in found.groups)]
        if alone and not found.single:
            yield f"{code(side.label)} alone has {', '.join(map(code, alone))}."
    for group in found.groups:
        yield from _seeds(found, group)
    if len(environments) == 1:
        yield from _panels(found)


def _panels(found: Compared) -> Iterator[str]:
    """Panels that were made anew between the sides."""
    names = dict.fromkeys(row.metric.short for row in found.differences if row.why is Why.OTHER_TASKS)
    if names:
        yield f"Measured on different tasks, so not compared: {', '.join(names)}."
    if any(row.paired_on is not None and row.paired_on.partly for row in found.differences):
        yield "Some panels share a part of their tasks only: differences are over what both have."


def _seeds(found: Compared, group: Group) -> Iterator[str]:
    """Seeds that differ in number: what of them is left out. A side without panels has no seeds that are known."""
    start = first(group)
    reference = group.of[start]
    for side, arm in list(zip(found.sides, group.of, strict=True))[start + 1 :]:
        if arm is None or reference is None or arm.seeds == reference.seeds:
            continue
        if not (arm.panels and reference.panels):
            continue
        pair = f"{found.sides[start].letter} and {side.letter}{f', {code(group.arm)}' if group.arm else ''}"
        if len(arm.seeds) == len(reference.seeds) == 1:
            yield f"{pair}: one seed each, and not the same one: they are compared task by task."
        else:
            held = " against ".join(", ".join(map(str, of.seeds)) or "none" for of in (reference, arm))
            yield f"{pair} have other seeds ({held}): only those of both are compared."
