"""Reading and writing files of problems. Error messages name file, line and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from envs.coding.formats import codecontests, livebench, livecodebench, reference
from envs.coding.formats.record import FormatError, Record, strict_json
from envs.coding.problem import Problem, ProblemError, require_json
from rlanything.core.types import Json
from rlanything.files.atomic import write_text
from rlanything.files.reader import FileError, read_text, require_fits

MOST_MB = 8192
"""Published sets of problems are large: their tests are in them."""
MOST_REFUSED = 20
"""Refused records that one message lists."""


@dataclass(frozen=True, slots=True)
class Format:
    """How one kind of file is read and written. `lines`: one record a line, otherwise one list."""

    read: Callable[[Record], Problem]
    write: Callable[[Problem], dict[str, Json]]
    lines: bool = True


FORMATS = {
    livebench.NAME: Format(livebench.read, livebench.write),
    livecodebench.NAME: Format(livecodebench.read, livecodebench.write),
    codecontests.NAME: Format(codecontests.read, codecontests.write),
    reference.NAME: Format(reference.read, reference.write, lines=False),
}
"""The formats by the name that configuration calls them."""
DIFFICULTY = {codecontests.NAME: codecontests.difficulty}
"""How difficult a problem is, for the formats that number it."""


def load(path: Path, form: str, *, skip: bool = False) -> tuple[list[Problem], list[str]]:
    """(problems, a message for each refused record).

    Raises `FormatError` for refused records unless `skip`, and `FileError` where the tests, unpacked, exceed the limit.
    """
    problems: list[Problem] = []
    refused: list[str] = []
    seen: dict[Json, str] = {}
    held = 0
    for place, data in _merged(path):
        try:
            if isinstance(data, FormatError):
                raise data
            problem = FORMATS[form].read(Record(data))
            held += sum(len(case.input) + len(case.output) for case in problem.cases)
            require_json(problem)
            _require_new(problem, place, seen)
            problems.append(problem)
        except (FormatError, ProblemError) as error:
            refused.append(f"{place}: {error}")
        require_fits(path, held, MOST_MB)
    if refused and not skip:
        more = f"\n... and {len(refused) - MOST_REFUSED} more" if len(refused) > MOST_REFUSED else ""
        raise FormatError("\n".join(refused[:MOST_REFUSED]) + more)
    if not problems:
        raise FormatError(f"{path}: it holds no problem in the format {form!r}")
    return problems, refused


def save(path: Path, form: str, problems: Iterable[Problem]) -> None:
    """Write problems as a file of that format. Raises `FormatError` for one that the format cannot hold."""
    records = [FORMATS[form].write(problem) for problem in problems]
    if FORMATS[form].lines:
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    else:
        text = json.dumps(records, ensure_ascii=False, indent=2) + "\n"
    write_text(path, text)


def records(path: Path) -> Iterator[tuple[str, Json | FormatError]]:
    """(place, record or error) of each line or list item; `place` is the file with the number.

    Raises `FormatError` for a file that cannot be read at all.
    """
    try:
        text = read_text(path, MOST_MB)
    except FileError as error:
        raise FormatError(str(error)) from None
    if text.lstrip().startswith("["):
        yield from _items(path, text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield f"{path}:{number}", _json(line)


def _items(path: Path, text: str) -> Iterator[tuple[str, Json]]:
    items = _json(text)
    if isinstance(items, FormatError):
        raise FormatError(f"{path}: {items}")
    for number, item in enumerate(items):
        yield f"{path}[{number}]", item


def _json(text: str) -> Json | FormatError:
    try:
        return strict_json(text)
    except ValueError as error:
        return FormatError(f"not JSON: {error}")


def _merged(path: Path) -> Iterator[tuple[str, Json | FormatError]]:
    """The records, with the tests that LiveBench keeps in separate files beside the questions."""
    apart: dict[str, Mapping[str, Json]] = {}
    for extra in sorted(path.parent.glob("test_cases_*.jsonl")) if path.name == "question.jsonl" else ():
        for place, data in records(extra):
            if isinstance(data, FormatError):
                raise FormatError(f"{place}: {data}")
            apart[Record(data, place).name("question_id")] = data
    for place, data in records(path):
        if isinstance(data, Mapping) and isinstance(name := data.get("question_id"), str | int):
            data = {**apart.get(str(name), {}), **data}
        yield place, data


def _require_new(problem: Problem, place: str, seen: dict[Json, str]) -> None:
    name = problem.source.get("id", problem.statement)
    if name in seen:
        raise FormatError(f"the same problem stands at {seen[name]}")
    seen[name] = place
