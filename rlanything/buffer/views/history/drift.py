"""`drift`: how far a run's tasks moved from the first ones, and whether they become alike."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.model import TaskBuffer
from rlanything.buffer.views.find.source import Source
from rlanything.buffer.views.tasks.near_duplicates import BREAK, THRESHOLD, near_duplicates, words
from rlanything.buffer.views.tasks.task_fields import (
    METADATA,
    NOTHING,
    contents,
    kind_fields,
    pairs_of,
    scalar_fields,
    spelled,
)
from rlanything.buffer.views.tasks.word_diff import word_diff
from rlanything.buffer.views.terminal import Screen, aligned, heading, lay_out, plain
from rlanything.core.printable import one_line
from rlanything.core.types import Json, Task

RESAMPLES = 2000
"""Random swaps of old and new tasks that a field's shift is compared with."""
_LEAST_P = 0.05
_COLLAPSE = 0.8
"""Share of the first diversity below which there is a warning."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Variety:
    """How different the tasks of one buffer are."""

    slots: int
    distinct_tasks: int
    distinct_sentences: int
    distinct_words: int
    effective_sentences: float
    """exp of the entropy of the sentences: that many equally frequent sentences would be as varied."""


def drift_page(source: Source, seed: int) -> dict[str, Json]:
    """Each iteration's distance from the v0s and its variety, the shifts of fields, duplicates and warnings."""
    run = source.run_buffer
    if not len(source.buffer):
        raise TaskBufferError(f"{source.name}: the buffer is empty, it has no slots")
    rows = [_iteration(number, run.at(number)) for number in run.iterations if number <= source.iteration]
    before, after = _origin(source.buffer), _heads(source.buffer)
    shifts = field_shifts(before, after, seed)
    groups = duplicates(source.buffer)
    near = {"old": _in_groups(_near(before)), "new": _in_groups(_near(after)), "similarity": THRESHOLD}
    return {
        "name": source.name,
        "iterations": rows,
        "fields": shifts,
        "duplicates": groups,
        "near_duplicates": near,
        "resamples": RESAMPLES,
        "warnings": warnings(variety(before), variety(after), near, shifts),
    }


def field_shifts(before: Sequence[Task], after: Sequence[Task], seed: int) -> list[dict[str, Json]]:
    """Per field, the total variation between its old and new distribution, with p from a permutation test.

    A resample swaps the old and new task of each slot with probability 1/2. p is the share of resamples with at least
    the observed variation; the observed one counts as one of them, so p is never 0.
    """
    old, new = [scalar_fields(task) for task in before], [scalar_fields(task) for task in after]
    known = [path for path in kind_fields([*old, *new]) if path in _usual(old) and path in _usual(new)]
    rng = random.Random(seed)
    rows = [_shift(path, [*old, *new], len(before), rng) for path in known]
    return sorted(rows, key=lambda row: (row["p"], -row["distance"], row["field"]))


def _usual(found: Sequence[Mapping[str, Json]]) -> set[str]:
    """The fields that most of these tasks have. A field of only the old or only the new tasks has no shift."""
    counts = Counter(path for task in found for path in task)
    return {path for path, count in counts.items() if 2 * count > len(found)}


def _shift(path: str, found: Sequence[Mapping[str, Json]], pairs: int, rng: random.Random) -> dict[str, Any]:
    words = [spelled(task.get(path)) for task in found]
    old, new = words[:pairs], words[pairs:]
    moved = [(x, y) for x, y in zip(old, new, strict=True) if x != y and not _unnoted(path, x, y)]
    observed = _distance(moved, pairs)
    as_far = sum(_distance(_swapped(moved, rng), pairs) >= observed - 1e-12 for _ in range(RESAMPLES))
    gains = Counter(dict.fromkeys(words, 0))
    gains.update(y for _, y in moved)
    gains.subtract(x for x, _ in moved)
    most, least = max(gains, key=lambda w: (gains[w], w)), min(gains, key=lambda w: (gains[w], w))
    return {
        "field": path,
        "changed": len(moved),
        "distance": observed,
        "p": (as_far + 1) / (RESAMPLES + 1),
        "gained": {"value": most, "old": old.count(most), "new": new.count(most)},
        "lost": {"value": least, "old": old.count(least), "new": new.count(least)},
    }


def _unnoted(path: str, old: str, new: str) -> bool:
    """Whether only one of two tasks has this field of the metadata: it notes how that task was made."""
    return path.startswith(METADATA) and NOTHING in (old, new)


def _distance(moved: Sequence[tuple[str, str]], pairs: int) -> float:
    """Total variation between two distributions over `pairs` tasks. Tasks that did not move cancel out."""
    difference = Counter(new for _, new in moved)
    difference.subtract(old for old, _ in moved)
    return sum(map(abs, difference.values())) / (2 * pairs)


def _swapped(moved: Sequence[tuple[str, str]], rng: random.Random) -> list[tuple[str, str]]:
    flips = rng.getrandbits(len(moved)) if moved else 0
    return [(b, a) if flips >> k & 1 else (a, b) for k, (a, b) in enumerate(moved)]


def duplicates(buffer: TaskBuffer) -> list[dict[str, Json]]:
    """Groups of slots with the same task, the same or nearly the same words, or the same pairs of texts; largest first.

    Two problems with the same tests are the same problem in other words.
    """
    ids: dict[Hashable, list[int]] = {}
    paired: dict[tuple[str, Hashable], list[int]] = {}
    sentences: dict[Hashable, list[int]] = {}
    for lineage in buffer.lineages:
        task = lineage.head.task
        ids.setdefault(task.task_id, []).append(lineage.slot)
        sentences.setdefault(words(task.instruction), []).append(lineage.slot)
        for path, pairs in pairs_of(task).items():
            paired.setdefault((path, frozenset(pairs)), []).append(lineage.slot)
    same = {tuple(slots) for slots in ids.values() if len(slots) > 1}
    near = {tuple(slots) for slots in sentences.values() if len(slots) > 1} - same
    close = [tuple(buffer.slots[k] for k in group) for group in _near(_heads(buffer))]
    groups = [("same task", slots) for slots in same] + [("same words", slots) for slots in near]
    groups += [("nearly the same words", slots) for slots in close]
    groups += [
        (f"same {path}", tuple(slots))
        for (path, _), slots in paired.items()
        if len(slots) > 1 and tuple(slots) not in same
    ]
    return [
        {"kind": kind, "slots": list(slots), "instruction": buffer.head(slots[0]).instruction}
        for kind, slots in sorted(groups, key=lambda group: (-len(group[1]), group))
    ]


def _near(tasks: Sequence[Task]) -> list[list[int]]:
    return near_duplicates([task.instruction for task in tasks])


def _in_groups(groups: Sequence[Sequence[int]]) -> int:
    return sum(map(len, groups))


def variety(tasks: Sequence[Task]) -> Variety:
    """How different these tasks are."""
    sentences = Counter(words(task.instruction) for task in tasks)
    shares = [count / len(tasks) for count in sentences.values()]
    return Variety(
        slots=len(tasks),
        distinct_tasks=len({task.task_id for task in tasks}),
        distinct_sentences=len(sentences),
        distinct_words=len({word for sentence in sentences for word in sentence} - {BREAK}),
        effective_sentences=math.exp(-sum(share * math.log(share) for share in shares)),
    )


def warnings(
    old: Variety, new: Variety, near: Mapping[str, Any], shifts: Sequence[Mapping[str, Any]]
) -> list[str]:
    """What needs a closer look, in one sentence each."""
    found = []
    if new.distinct_tasks < _COLLAPSE * old.distinct_tasks:
        found.append(f"collapse: {new.distinct_tasks} distinct tasks are left of {old.distinct_tasks}")
    if new.effective_sentences < _COLLAPSE * old.effective_sentences:
        found.append(
            f"collapse: the sentences are as varied as {new.effective_sentences:.1f} equally frequent ones, "
            f"{old.effective_sentences:.1f} at the start"
        )
    if near["new"] - near["old"] > (1 - _COLLAPSE) * new.slots:
        found.append(
            f"collapse: {near['new']} slots have nearly the words of another one, {near['old']} at the start"
        )
    for row in shifts:
        gained = row["gained"]
        if row["p"] < _LEAST_P / len(shifts) and gained["new"] > new.slots / 2 > gained["old"]:
            found.append(f"one kind takes over: {row['field']} is {gained['value']} in {gained['new']} slots")
    return found


def drift_text(page: Mapping[str, Any], screen: Screen) -> str:
    """Warnings, one line an iteration, the shifted fields and the duplicates."""
    alarms = [plain(f"WARNING {one_line(words)}") for words in page["warnings"]]
    text = lay_out([heading(page["name"]), *alarms, plain("")], screen)
    text += "".join(aligned(_HEADS, [_cells(row) for row in page["iterations"]], set(range(8)), screen))
    shifts = [row for row in page["fields"] if row["changed"]]
    title = f"fields: shift of the distribution, p by {page['resamples']} swaps of old and new"
    text += lay_out([plain(""), heading(title)], screen)
    cells = [_shift_cells(row) for row in shifts]
    heads = ("field", "changed", "distance", "p", "most gained", "most lost")
    text += "".join(aligned(heads, cells, {1, 2, 3}, screen)) if cells else "  none changed\n"
    groups = page["duplicates"]
    text += lay_out([plain(""), heading(f"duplicates, groups of slots: {len(groups)}")], screen)
    return text + "".join(_group(group) for group in groups[:_GROUPS])


_HEADS = ("iteration", "moved", "fields", "words", "distance", "tasks", "sentences", "effective")
_GROUPS = 10
"""Groups of duplicates that the text shows; `--json` has all."""


def _cells(row: Mapping[str, Any]) -> list[str]:
    cells = [str(row["iteration"]), f"{row['moved']}/{row['slots']}"]
    cells += [f"{row[key]:.2f}" for key in ("field_edits", "word_edits", "lexical_distance")]
    cells += [str(row["distinct_tasks"]), str(row["distinct_sentences"]), f"{row['effective_sentences']:.1f}"]
    return cells


def _shift_cells(row: Mapping[str, Any]) -> list[str]:
    sides = [row["gained"], row["lost"]]
    words = [f"{one_line(side['value'])} {side['old']} -> {side['new']}" for side in sides]
    return [one_line(row["field"]), str(row["changed"]), f"{row['distance']:.2f}", f"{row['p']:.2g}", *words]


def _group(group: Mapping[str, Any]) -> str:
    slots = ", ".join(map(str, group["slots"][:8])) + (", ..." if len(group["slots"]) > 8 else "")
    return f"  {group['kind']}, {len(group['slots'])} slots ({slots}): {one_line(group['instruction'])}\n"


def _iteration(number: int, buffer: TaskBuffer) -> dict[str, Any]:
    pairs = list(zip(_origin(buffer), _heads(buffer), strict=True))
    moved = [(old, new) for old, new in pairs if old.task_id != new.task_id]
    total = max(1, len(pairs))
    return {
        "iteration": number,
        "moved": len(moved),
        "field_edits": sum(_field_edits(old, new) for old, new in moved) / total,
        "word_edits": sum(_word_edits(old, new) for old, new in moved) / total,
        "lexical_distance": fmean([_lexical(old, new) for old, new in pairs]) if pairs else 0.0,
        **asdict(variety([new for _, new in pairs])),
    }


def _field_edits(old: Task, new: Task) -> int:
    """Fields of the payload that were changed, added or removed; a list is one field."""
    before, after = dict(contents(old.payload)), dict(contents(new.payload))
    paths = {*before, *after}
    return sum(before.get(path) != after.get(path) or (path in before) != (path in after) for path in paths)


def _word_edits(old: Task, new: Task) -> int:
    """Words that were replaced, inserted or deleted; of a replacement the longer side counts."""
    edits, gone = 0, 0
    for kind, text in [*word_diff(old.instruction, new.instruction), ("same", "")]:
        count = len(_WORDS.findall(text))
        if kind == "new":
            edits, gone = edits + max(gone, count), 0
        else:
            edits, gone = edits + gone, count if kind == "old" else 0
    return edits


def _lexical(old: Task, new: Task) -> float:
    """1 - shared words / all words: 0 for the same words, 1 for none in common."""
    before, after = (set(words(task.instruction)) - {BREAK} for task in (old, new))
    return 1 - len(before & after) / len(before | after) if before | after else 0.0


def _origin(buffer: TaskBuffer) -> list[Task]:
    return [lineage.versions[0].task for lineage in buffer.lineages]


def _heads(buffer: TaskBuffer) -> list[Task]:
    return [lineage.head.task for lineage in buffer.lineages]
