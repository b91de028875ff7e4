"""The fields in which two tasks differ: scalars by value, long texts line by line, lists item by item.

Lists of pairs of texts are compared pair by pair (see `text_pairs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rlanything.buffer.views.tasks.alignment import stretches
from rlanything.buffer.views.tasks.task_fields import METADATA, contents
from rlanything.buffer.views.tasks.text_pairs import PairChange, as_pairs, pair_changes
from rlanything.buffer.views.tasks.word_diff import Part
from rlanything.core.ids import canonical_json
from rlanything.core.types import Json, Task

Field = dict[str, Json]
"""field: its path. in: the tasks that have it, `both`, `old` or `new`. old, new: its values, or None.

lines: for a long text or a list, [same | old | new, line] in reading order. pairs: for a list of pairs of texts, a
`PairChange` each; old and new are then the numbers of pairs.
"""
_ID = re.compile(r"[0-9a-f]{64}")
_MOST_LINES = 5000
"""Lines up to which texts are compared line by line; a longer text is one change."""


def changed_fields(old: Task, new: Task) -> list[Field]:
    """The fields that differ: those of both tasks, then those of the old one only, then those of the new one only.

    A field of the metadata counts only if both tasks have it: the rewritten task alone notes how it was made.
    """
    before, after = _values(old), _values(new)
    both = [path for path in after if path in before and _differ(before[path], after[path])]
    gone = [path for path in before if path not in after and not path.startswith(METADATA)]
    fresh = [path for path in after if path not in before and not path.startswith(METADATA)]
    shown = [path for path in both if not _is_id(before[path])]
    return [_field(path, before, after) for path in (*sorted(shown), *sorted(gone), *sorted(fresh))]


def line_diff(old: Sequence[str], new: Sequence[str]) -> list[Part]:
    """The lines of both, and of one only, in reading order."""
    if max(len(old), len(new)) > _MOST_LINES:
        return [*(("old", line) for line in old), *(("new", line) for line in new)]
    return list(_matched(old, new))


def _matched(old: Sequence[str], new: Sequence[str]) -> Iterator[Part]:
    for same, (i, k), (j, m) in stretches(old, new):
        if same:
            yield from (("same", line) for line in old[i:k])
        else:
            yield from (("old", line) for line in old[i:k])
            yield from (("new", line) for line in new[j:m])


def _values(task: Task) -> dict[str, Json]:
    """Every field with its value; a list is one field."""
    found = dict(contents(task.payload)) if task.payload else {}
    if task.metadata:
        found.update((METADATA + path, value) for path, value in contents(task.metadata))
    return found


def _field(path: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> Field:
    old, new = before.get(path), after.get(path)
    where = "both" if path in before and path in after else "new" if path in after else "old"
    found = _pairs(old, new)
    if found:
        counts = {"old": None if old is None else len(old), "new": None if new is None else len(new)}
        return {"field": path, **counts, "in": where, "pairs": [change.to_json() for change in found]}
    lines = _lines(old, new)
    return {"field": path, "old": old, "new": new, "in": where, **({"lines": lines} if lines else {})}


def _pairs(old: Json, new: Json) -> list[PairChange]:
    """What became of the pairs, if both values are lists of pairs, or one is and the other is empty."""
    before, after = as_pairs(old), as_pairs(new)
    if (before or old in (None, [])) and (after or new in (None, [])):
        return pair_changes(before or (), after or ())
    return []


def _lines(old: Json, new: Json) -> list[list[str]]:
    """The line diff of two lists, or of two texts if one has several lines; none for other values."""
    if isinstance(old, list | None) and isinstance(new, list | None):
        before, after = ([canonical_json(item) for item in value or ()] for value in (old, new))
    elif isinstance(old, str | None) and isinstance(new, str | None) and "\n" in f"{old or ''}{new or ''}":
        before, after = ((value or "").split("\n") for value in (old, new))
    else:
        return []
    return [list(part) for part in line_diff(before, after)]


def _differ(old: Json, new: Json) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return canonical_json(old) != canonical_json(new)
    return type(old) is not type(new) or bool(old != new)


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None
