"""Answers of a model and judgments of them, in LiveBench's files.

    data/live_bench/coding/<task>/question.jsonl
    data/live_bench/coding/<task>/model_answer/<model>.jsonl
    data/live_bench/coding/<task>/model_judgment/ground_truth_judgment.jsonl

LiveBench makes its tables from the last one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.coding.formats.files import records
from envs.coding.formats.record import FormatError, Record
from rlanything.core.thoughts import after_thought
from rlanything.core.types import Json
from rlanything.files.atomic import write_text

CATEGORY = "coding"


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer to a question, after its thought; empty where the thought does not end. whole: with it."""

    question_id: str
    text: str
    answer_id: str = ""
    whole: str = ""


def judgment_path(data: Path, task: str) -> Path:
    """Where judgments of a task are."""
    return data / "live_bench" / CATEGORY / task / "model_judgment" / "ground_truth_judgment.jsonl"


def read_records(path: Path) -> Iterator[Record]:
    """The lines of a file; messages about a field name its file and line. Raises `FormatError` for a bad line."""
    for place, data in records(path):
        if isinstance(data, FormatError):
            raise FormatError(f"{place}: {data}")
        yield Record(data, place)


def read_answers(path: Path) -> dict[str, Answer]:
    """The answers of a model by question; of several to one question the last counts. Raises `FormatError`."""
    found: dict[str, Answer] = {}
    for record in read_records(path):
        choices = record.records("choices")
        turns = choices[0].texts("turns") if choices else []
        if not turns:
            record.fail("choices", "there is no answer in it")
        said = after_thought(turns[-1]) or ""
        answer = Answer(record.name("question_id"), said, record.text("answer_id", ""), turns[-1])
        found[answer.question_id] = answer
    return found


def read_judgments(path: Path) -> dict[tuple[str, str], Json]:
    """The judgments in a file by (question, model); none where there is no file. Raises `FormatError`."""
    found: dict[tuple[str, str], Json] = {}
    for record in read_records(path) if path.is_file() else ():
        found[record.name("question_id"), record.name("model")] = record.data
    return found


def judgment(answer: Answer, task: str, model: str, score: int, time_s: float) -> dict[str, Json]:
    """A judgment as LiveBench writes it."""
    row: dict[str, Json] = {
        "question_id": answer.question_id,
        "task": task,
        "model": model,
        "score": score,
        "tstamp": time_s,
        "category": CATEGORY,
    }
    return {**row, "answer_id": answer.answer_id} if answer.answer_id else row


def tidy(path: Path, without: Collection[tuple[str, str]] = ()) -> None:
    """Keep the last judgment of each (question, model), sorted, as LiveBench leaves its files.

    `without`: (question, model) whose judgments are removed.
    """
    rows = read_judgments(path)
    write_text(path, "".join(json.dumps(rows[key]) + "\n" for key in sorted(rows) if key not in without))


def mean_score(rows: Sequence[Json]) -> float:
    """Percent of the judgments' scores, as LiveBench's tables show it."""
    return 100 * sum(row["score"] for row in rows) / len(rows)
