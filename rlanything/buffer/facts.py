"""What a task is made of, for comparing tasks of any family: the scalar fields of its payload and metadata.

A field is named by its path, `knobs.copies`; fields of the metadata begin with `metadata.`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rlanything.buffer.fields import TaskBufferError
from rlanything.core.types import Json, Task

METADATA = "metadata."
_MOST_VALUES = 200
"""A field with more distinct values tells tasks apart; it does not sort them into kinds."""
_ID = re.compile(r"[0-9a-f]{64}")


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """(path, scalar) of everything inside a JSON value; an empty list or object is a leaf too."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}.{index}")
    else:
        yield path, value


def facts(task: Task) -> dict[str, Json]:
    """Every scalar field of a task, by path."""
    found = dict(leaves(task.payload)) if task.payload else {}
    if task.metadata:
        found.update((METADATA + path, value) for path, value in leaves(task.metadata))
    return found


def changed_facts(old: Task, new: Task) -> list[dict[str, Json]]:
    """The fields that differ, `{"field", "old", "new"}`: first those that both have, then those of one only.

    Metadata counts where both tasks have it: what only the rewritten one notes is how it came about.
    """
    before, after = facts(old), facts(new)
    both = [path for path in after if path in before and _differ(before[path], after[path])]
    gone = [path for path in before if path not in after and not path.startswith(METADATA)]
    fresh = [path for path in after if path not in before and not path.startswith(METADATA)]
    told = [path for path in both if not _is_id(before[path])]
    return [
        {"field": path, "old": before.get(path), "new": after.get(path), "in": _where(path, before, after)}
        for path in (*sorted(told), *sorted(gone), *sorted(fresh))
    ]


def kinds(found: Iterable[Mapping[str, Json]]) -> list[str]:
    """The fields that sort tasks into kinds: most tasks have them, and their values repeat. Sorted by path."""
    tasks, values, present = 0, dict[str, set[str]](), Counter[str]()
    for task in found:
        tasks += 1
        present.update(task.keys())
        for path, value in task.items():
            values.setdefault(path, set()).add(spelled(value))
    return [path for path in sorted(values) if _sorts(len(values[path]), present[path], tasks)]


def spelled(value: Json) -> str:
    """A scalar as a word: the same for 2 and 2.0, true and false in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ("", [], {}):
        return "-"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def named(field: str, known: Iterable[str]) -> str:
    """The known field that `field` names: its path, the end of it, or a part of it. Raises `TaskBufferError`."""
    paths = sorted(known)
    tests = (
        lambda path: path == field,
        lambda path: path.endswith(f".{field}"),
        lambda path: field.lower() in path.lower(),
    )
    for test in tests:
        found = [path for path in paths if test(path)]
        if len(found) == 1:
            return found[0]
        if found:
            raise TaskBufferError(f"{field!r} names {len(found)} fields: {', '.join(found)}")
    raise TaskBufferError(
        f"no field {field!r} that sorts these tasks into kinds; there are: {', '.join(paths) or 'none'}"
    )


def _sorts(distinct: int, present: int, tasks: int) -> bool:
    return 2 <= distinct <= min(_MOST_VALUES, max(2, tasks // 2)) and 2 * present >= tasks


def _differ(old: Json, new: Json) -> bool:
    return type(old) is not type(new) or bool(old != new)


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _where(path: str, before: Mapping[str, Json], after: Mapping[str, Json]) -> str:
    return "both" if path in before and path in after else "new" if path in after else "old"
