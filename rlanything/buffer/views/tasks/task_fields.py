"""The fields of a task of any family: the scalars of its payload and metadata.

A field is named by its path, `knobs.copies`; those of the metadata begin with `metadata.`. A list of pairs of texts
(`text_pairs`), such as the tests of a programming problem, is one field; its value is the number of pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rlanything.buffer.fields import TaskBufferError
from rlanything.buffer.views.tasks.text_pairs import Pair, as_pairs
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
    found = dict(leaves(task.payload)) if task.payload else {}
    if task.metadata:
        found.update((METADATA + path, value) for path, value in leaves(task.metadata))
    return found


def pairs_of(task: Task) -> dict[str, tuple[Pair, ...]]:
    """The payload's lists of pairs of texts, by path."""
    return {path: pairs for path, value in contents(task.payload) if (pairs := as_pairs(value))}


def kind_fields(found: Iterable[Mapping[str, Json]]) -> list[str]:
    """The fields that sort tasks into kinds: at least half the tasks have them, and values repeat. Sorted by path."""
    tasks, values, present = 0, dict[str, set[str]](), Counter[str]()
    for task in found:
        tasks += 1
        present.update(task.keys())
        for path, value in task.items():
            values.setdefault(path, set()).add(spelled(value))
    return [path for path in sorted(values) if _sorts(len(values[path]), present[path], tasks)]


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
    raise TaskBufferError(
        f"no field {field!r} that sorts these tasks into kinds; there are: {', '.join(paths) or 'none'}"
    )


def _sorts(distinct: int, present: int, tasks: int) -> bool:
    return 2 <= distinct <= min(_MOST_VALUES, max(2, tasks // 2)) and 2 * present >= tasks
