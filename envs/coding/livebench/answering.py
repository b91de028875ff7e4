"""A model's answers to LiveBench's coding questions, in LiveBench's files: what is asked, and where answers go.

    data/live_bench/coding/<task>/model_answer/<model>.jsonl
    data/live_bench/coding/<task>/model_answer/<model>.json     what made them

Who samples the answers is not known here.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from envs.coding.environment import opening
from envs.coding.formats.record import FormatError
from envs.coding.livebench.files import append, differences, mend, read_record, write_record
from envs.coding.livebench.install import LiveBenchError
from envs.coding.livebench.judgments import CATEGORY, read_answers
from envs.coding.livebench.selection import LATEST, asked
from rlanything.core.ids import content_id
from rlanything.core.types import Json

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ID_DIGITS = 22
"""Characters of an answer's id, as many as LiveBench's have."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: LiveBench's id and task, and what a policy of this project reads."""

    question_id: str
    task: str
    text: str


def questions_of(files: Sequence[Path], release: date | None) -> list[Question]:
    """The questions of a release, in the order of the files; None for all not removed. Raises `FormatError`."""
    found = [
        Question(str(problem.source["id"]), str(problem.source["task"]), opening(problem))
        for path in files
        for problem in asked(path, release or LATEST)
    ]
    seen: set[str] = set()
    for question in found:
        if question.question_id in seen:
            raise FormatError(f"question {question.question_id!r} stands in two of the files")
        seen.add(question.question_id)
    return found


def answer_path(data: Path, task: str, model: str) -> Path:
    """Where a model's answers to a task's questions are."""
    return data / "live_bench" / CATEGORY / task / "model_answer" / f"{model}.jsonl"


class Answers:
    """The answers of one model below a folder; each is on disk as soon as it is given."""

    def __init__(self, data: Path, model: str, made: Mapping[str, Json]) -> None:
        """`made`: what the answers depend on. Raises `LiveBenchError` for a name that cannot be a file's."""
        if not _NAME.fullmatch(model):
            raise LiveBenchError(
                f"--model {model!r}: it names a file, so it may hold letters, digits, '.', '_' and '-', 100 at most"
            )
        self.data = data
        self.model = model
        self.made = json.loads(json.dumps(made))

    def missing(self, questions: Iterable[Question]) -> list[Question]:
        """The questions without an answer on disk.

        Raises `LiveBenchError` where the answers that are there were made by something else.
        """
        todo = list(questions)
        known = {
            task: self._known(answer_path(self.data, task, self.model)) for task in {q.task for q in todo}
        }
        return [question for question in todo if question.question_id not in known[question.task]]

    def keep(self, question: Question, text: str, tokens: int) -> None:
        """Write an answer of so many tokens, as LiveBench writes it."""
        row = {
            "question_id": question.question_id,
            "answer_id": content_id([question.question_id, self.model, self.made, text])[:_ID_DIGITS],
            "model_id": self.model,
            "choices": [{"index": 0, "turns": [text]}],
            "tstamp": time.time(),
            "total_output_tokens": tokens,
        }
        append(answer_path(self.data, question.task, self.model), row)

    def _known(self, path: Path) -> set[str]:
        """Questions with an answer in the file, whose record is checked or made."""
        record = path.with_suffix(".json")
        if record.is_file():
            if changed := differences(read_record(record), self.made):
                raise LiveBenchError(
                    f"{path}: these answers were made with another {changed} ({record.name}); "
                    "give the new ones another --model name"
                )
        elif path.is_file():
            raise LiveBenchError(f"{path}: other answers lie there; give the new ones another --model name")
        else:
            write_record(record, self.made)
        mend(path)
        return set(read_answers(path)) if path.is_file() else set()
