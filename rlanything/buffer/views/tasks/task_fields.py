"""The fields of a task of any family: the scalars of its payload and metadata.

A field is named by its path, `knobs.copies`; those of the metadata begin with `metadata.`. A list of pairs of texts
(`text_pairs`), such as the tests of a programming problem, is one field; its value is the number of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.tasks.text_pairs import Pair, as_pairs
from rlanything.core.errors import unknown
from rlanything.core.types import Json, Task

METADATA = "metadata."
NOTHING = "-"
"""Stands for a value that is missing or empty."""
_MOST_VALUES = 200
"""Distinct values up to which a field can sort tasks into kinds; one with more only tells tasks apart."""


def contents(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """(path, value) of everything inside the objects of a JSON value. Lists and empty objects are values."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            yield from contents(value[key], f"{path}.{key}" if path else key)
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """(path, scalar) of everything inside a JSON value. Empty lists and objects count as scalars; pairs are counted."""
    for place, found in contents(value, path):
        if not isinstance(found, list) or not found:
            yield place, found
        elif as_pairs(found):
            yield place, len(found)
        else:
            for index, item in enumerate(found):
                yield from leaves(item, f"{place}.{index}")


def scalar_fields(task: Task) -> dict[str, Json]:
    """Every scalar field of a task, by path."""
    return fields_of(task.payload, task.metadata)


def fields_of(payload: Mapping[str, Json], metadata: Mapping[str, Json]) -> dict[str, Json]:
    """Every scalar field of the task with this payload and metadata, by path."""
    found = dict(leaves(payload)) if payload else {}
    if metadata:
        found.update((METADATA + path, value) for path, value in leaves(metadata))
    return found


def pairs_of(task: Task) -> dict[str, tuple[Pair, ...]]:
    """The payload's lists of pairs of texts, by path."""
    return {path: pairs for path, value in contents(task.payload) if (pairs := as_pairs(value))}


def kind_fields(found: Iterable[Mapping[str, Json]]) -> list[str]:
    """The fields that sort tasks into kinds: at least half the tasks have them, and values repeat. Sorted by path."""
    tasks, counted = 0, KindCount()
    for task in found:
        tasks += 1
        for path, value in task.items():
            counted.add(path, 1, (spelled(value),))
    return counted.fields(tasks)


class KindCount:
    """Counts the fields of tasks, to say which of them sort the tasks into kinds."""

    def __init__(self) -> None:
        self._present: Counter[str] = Counter()
        self._values: dict[str, set[str]] = {}

    def __len__(self) -> int:
        """How many fields were found."""
        return len(self._present)

    def add(self, path: str, tasks: int, values: Iterable[str]) -> None:
        """Count a field that `tasks` more tasks have. Of the values no more are read than can matter."""
        self._present[path] += tasks
        seen = self._values.setdefault(path, set())
        if len(seen) > _MOST_VALUES:
            return
        for value in values:
            seen.add(value)
            if len(seen) > _MOST_VALUES:
                return

    def fields(self, tasks: int) -> list[str]:
        """The fields that sort that many tasks into kinds, sorted by path."""
        found = self._values.items()
        return sorted(path for path, seen in found if _sorts(len(seen), self._present[path], tasks))


def spelled(value: Json) -> str:
    """A scalar as text: the same for 2 and 2.0; true and false in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value in ("", [], {}):
        return NOTHING
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def find_field(field: str, known: Iterable[str]) -> str:
    """The known field that `field` means: a path, the end of a path, or a part. Raises `TaskBufferError`."""
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
    known = unknown(field, paths) if paths else "there are none"
    raise TaskBufferError(f"no field {field!r} that sorts these tasks into kinds: {known}")


def _sorts(distinct: int, present: int, tasks: int) -> bool:
    return 2 <= distinct <= min(_MOST_VALUES, max(2, tasks // 2)) and 2 * present >= tasks
