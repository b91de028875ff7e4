"""`diff BASE A B`: what two runs with a common start made of the same slots, and how often they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from rlanything.buffer.model import Lineage
from rlanything.buffer.views.compare.changes import STATUSES, Changes, Status, changes
from rlanything.buffer.views.compare.reasons import did
from rlanything.buffer.views.compare.sides import Side, new_events
from rlanything.buffer.views.compare.slot_diff import common_start, path_of
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.tasks.field_diff import changed_fields
from rlanything.buffer.views.tasks.task_fields import pairs_of
from rlanything.buffer.views.tasks.text_pairs import Fate, pair_changes, tally
from rlanything.buffer.views.terminal import Screen, aligned, cut, heading, lay_out, plain, share
from rlanything.core.printable import one_line
from rlanything.core.types import Json, Task


class Verdict(StrEnum):
    """What two buffers made of one slot of their base. Every slot has exactly one verdict."""

    UNCHANGED = "unchanged in both"
    ALIKE = "changed alike"
    """Both have the same new task."""
    SAME_WAY = "same way to another task"
    OTHER_WAY = "other way"
    """Both changed it, and not in the same direction."""
    ONLY_A = "only in A"
    ONLY_B = "only in B"


_PAIRED = ("A's pairs", "B's pairs", "in both")
"""Columns for tasks with lists of pairs of texts, such as tests."""


def three_page(base: Source, a: Source, b: Source) -> dict[str, Json]:
    """What A and B made of every slot, how often they agree, and how often they would by chance."""
    tables = [source.table for source in (base, a, b)]
    to_a, to_b, between = (changes(tables[i], tables[k]) for i, k in ((0, 1), (0, 2), (1, 2)))
    slots = np.union1d(np.union1d(to_a.slots, to_b.slots), between.slots).tolist()
    ways_a, ways_b = _statuses(to_a), _statuses(to_b)
    same = {slot for slot, status in _statuses(between).items() if status is Status.UNCHANGED}
    rows = []
    for slot in slots:
        pair = ways_a.get(slot, Status.UNCHANGED), ways_b.get(slot, Status.UNCHANGED)  # in neither: no change
        rows.append((slot, *pair, _verdict(*pair, alike=slot in same)))
    counts = Counter(verdict.value for *_, verdict in rows)
    of_a, of_b = (Side(source, new_events(base, source)) for source in (a, b))
    return {
        "format": "rlanything buffer diff3",
        "schema": 1,
        "base": base.name,
        "a": a.name,
        "b": b.name,
        "counts": {"slots": len(slots), **{verdict.value: counts[verdict.value] for verdict in Verdict}},
        "agreement": agreement([(way_a.value, way_b.value) for _, way_a, way_b, _ in rows]),
        "slots": [_row(base, of_a, of_b, *row) for row in rows if row[3] is not Verdict.UNCHANGED],
    }


def agreement_of(base: Source, a: Source, b: Source) -> dict[str, Any]:
    """`agreement` of what A and B made of the slots of their base, without the slots themselves."""
    ways_a, ways_b = (_statuses(changes(base.table, source.table)) for source in (a, b))
    still = Status.UNCHANGED
    slots = ways_a.keys() | ways_b.keys()
    return agreement([(ways_a.get(slot, still).value, ways_b.get(slot, still).value) for slot in slots])


def agreement(pairs: list[tuple[str, str]]) -> dict[str, Json]:
    """How often A and B agree on a slot's status, how often they would by chance, and Cohen's kappa."""
    total = len(pairs)
    if not total:
        return {"slots": 0, "agree": 0, "observed": None, "chance": None, "kappa": None}
    agree = sum(a == b for a, b in pairs)
    says_a, says_b = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(says_a[word] * says_b[word] for word in says_a) / total**2
    kappa = (agree / total - chance) / (1 - chance) if chance < 1 else None
    return {"slots": total, "agree": agree, "observed": agree / total, "chance": chance, "kappa": kappa}


def three_text(page: Mapping[str, Any], screen: Screen) -> str:
    """The counts, the agreement, and a line for every slot that A or B changed."""
    top = [
        heading(f"{page['base']} -> A {page['a']}"),
        heading(f"{page['base']} -> B {page['b']}"),
        plain(verdicts_line(page["counts"])),
        plain(agreement_line(page["agreement"])),
    ]
    text = lay_out(top, screen)
    if not page["slots"]:
        return text
    room = max(16, (screen.width - 72) // 2)
    paired = any(row["shared"] for row in page["slots"])
    heads = ("slot", "", "A", "acc", "task", "B", "acc", "task", *(_PAIRED if paired else ()))
    cells = [_cells(row, room, paired=paired) for row in page["slots"]]
    table = list(aligned(heads, cells, {0}, screen))
    why = ["", *(_why(row, screen) for row in page["slots"])]
    return text + "\n" + "".join(line + below for line, below in zip(table, why, strict=True))


def _why(row: Mapping[str, Any], screen: Screen) -> str:
    """What each run did with the slot, below its line of the table."""
    told = [(name, row[side]["reason"]) for name, side in (("A", "a"), ("B", "b"))]
    lines = [plain(f"      {name}: {one_line(said)}") for name, said in told if said]
    return lay_out(lines, screen) if lines else ""


def shared_line(shared: Mapping[str, Any]) -> str:
    """`cases in A and B: 2 of 6 and 6`, for each list of pairs."""
    return "; ".join(
        f"{one_line(p)} in A and B: {n['both']} of {n['a']} and {n['b']}" for p, n in sorted(shared.items())
    )


def pairs_line(fields: Sequence[Mapping[str, Any]]) -> str:
    """`1 kept, 5 added, 5 removed`: the pairs of all lists that changed, without zeros."""
    counts = Counter(change["fate"] for field in fields for change in field.get("pairs", ()))
    return ", ".join(f"{counts[fate.value]} {fate.value}" for fate in Fate if counts[fate.value])


def verdicts_line(counts: Mapping[str, int]) -> str:
    """The comparison in one line; the parts after `slots:` add up."""
    parts = ", ".join(f"{counts[verdict.value]} {verdict.value}" for verdict in Verdict)
    return f"{counts['slots']} slots: {parts}"


def agreement_line(found: Mapping[str, Any]) -> str:
    """The agreement and its chance level in one line."""
    if found["observed"] is None:
        return "agreement: there are no slots"
    kappa = (
        "undefined, as both say one thing of every slot"
        if found["kappa"] is None
        else f"{found['kappa']:.2f}"
    )
    return (
        f"agreement on what became of a slot: {found['agree']} of {found['slots']} ({found['observed']:.0%}); "
        f"by chance {found['chance']:.0%}; kappa {kappa}"
    )


def _verdict(a: Status, b: Status, *, alike: bool) -> Verdict:
    still = Status.UNCHANGED
    if a is still and b is still:
        return Verdict.UNCHANGED
    if a is still or b is still:
        return Verdict.ONLY_B if a is still else Verdict.ONLY_A
    if alike or (a is Status.REMOVED and b is Status.REMOVED):
        return Verdict.ALIKE
    return Verdict.SAME_WAY if a is b else Verdict.OTHER_WAY


def _statuses(found: Changes) -> dict[int, Status]:
    return {slot: STATUSES[status] for slot, status in zip(found.slots.tolist(), found.status, strict=True)}


def _row(
    base: Source, a: Side, b: Side, slot: int, way_a: Status, way_b: Status, verdict: Verdict
) -> dict[str, Json]:
    old = base.buffer.lineage(slot) if slot in base.buffer else None
    return {
        "slot": slot,
        "verdict": verdict.value,
        "base": old.head.task.instruction if old else None,
        "a": _became(old, a, slot, way_a),
        "b": _became(old, b, slot, way_b),
        "shared": _shared(_head(a.source, slot), _head(b.source, slot)),
    }


def _shared(a: Task | None, b: Task | None) -> dict[str, Json]:
    """For each list of pairs in both tasks: the number of pairs in each, and in both."""
    if a is None or b is None:
        return {}
    left, right = pairs_of(a), pairs_of(b)
    return {
        path: {
            "a": len(left[path]),
            "b": len(right[path]),
            "both": tally(pair_changes(left[path], right[path]))[Fate.KEPT],
        }
        for path in left
        if path in right
    }


def _head(source: Source, slot: int) -> Task | None:
    return source.buffer.head(slot) if slot in source.buffer else None


def _became(old: Lineage | None, side: Side, slot: int, status: Status) -> dict[str, Json]:
    source = side.source
    new = source.buffer.lineage(slot) if slot in source.buffer else None
    before, after = (lineage.versions if lineage else () for lineage in (old, new))
    common = common_start([v.task.task_id for v in before], [v.task.task_id for v in after])
    head, base = (lineage.head.task if lineage else None for lineage in (new, old))
    return {
        "status": status.value,
        "path": path_of(before, after, common, status) if before or after else "-",
        "task_id": head.task_id if head else None,
        "instruction": head.instruction if head else None,
        "fields": changed_fields(base, head) if base and head and base.task_id != head.task_id else [],
        "accuracy": source.accuracies.get((slot, head.task_id)) if head else None,
        "reason": did(side.own(slot, after, common)) if before and after else "",
    }


def _cells(row: Mapping[str, Any], room: int, *, paired: bool) -> list[str]:
    sides = [row[side] for side in ("a", "b")]
    cells = [str(row["slot"]), row["verdict"], *(cell for side in sides for cell in _side(side, room))]
    if paired:
        cells += [pairs_line(side["fields"]) or "-" for side in sides]
        cells.append(", ".join(str(counts["both"]) for _, counts in sorted(row["shared"].items())) or "-")
    return cells


def _side(side: Mapping[str, Any], room: int) -> Iterator[str]:
    yield side["status"]
    yield share(side["accuracy"])
    yield cut(one_line(side["instruction"] or "-"), room)
