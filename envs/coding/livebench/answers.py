"""A model's answers to LiveBench's coding questions, in LiveBench's files, and the questions as a policy reads them.

data/live_bench/coding/<task>/model_answer/<model>.jsonl
data/live_bench/coding/<task>/model_answer/<model>.json     what made them
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

from envs.coding.environment import opening
from envs.coding.livebench.appending import append, changed_since, cut_unfinished_line
from envs.coding.livebench.install import LiveBenchError
from envs.coding.livebench.judgments import CATEGORY, Answer, read_answers
from envs.coding.livebench.selection import LATEST, asked, require_once
from rlanything.core.exams import Question
from rlanything.core.ids import content_id
from rlanything.core.types import Json

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ID_DIGITS = 22
"""Characters of an answer's id, as many as LiveBench's have."""


def questions_of(files: Sequence[Path], release: date | None) -> list[Question]:
    """The questions of a release, in the order of the files; None for all not removed. Raises `FormatError`."""
    problems = [problem for path in files for problem in asked(path, release or LATEST)]
    found = [Question(str(p.source["id"]), str(p.source["task"]), opening(p)) for p in problems]
    require_once(question.question_id for question in found)
    return found


def require_name(model: str) -> None:
    """Raise `LiveBenchError` for a name of a model that cannot be a file's."""
    if not _NAME.fullmatch(model):
        raise LiveBenchError(
            f"--model {model!r}: it names a file, so it may hold letters, digits, '.', '_' and '-', 100 at most"
        )


class AnswerFiles:
    """The answers of one model below a folder, a file for each task. Implements `core.exams.Answers`."""

    def __init__(self, data: Path, model: str, made: Mapping[str, Json]) -> None:
        """`made`: what the answers depend on. Raises `LiveBenchError` for a name that cannot be a file's."""
        require_name(model)
        self.data = data
        self.model = model
        self.made = json.loads(json.dumps(made))

    def missing(self, questions: Iterable[Question]) -> list[Question]:
        """The questions without an answer on disk. One whose text has changed since its answer is among them.

        Raises `LiveBenchError` where the answers that are there were made by something else.
        """
        todo = list(questions)
        answered = {task: self._answered(task) for task in {question.task for question in todo}}
        return [q for q in todo if not self._answers(answered[q.task].get(q.question_id), q)]

    def keep(self, question: Question, text: str, tokens: int) -> None:
        """Write an answer of so many tokens as LiveBench does."""
        row: dict[str, Json] = {
            "question_id": question.question_id,
            "answer_id": self._answer_id(question, text),
            "model_id": self.model,
            "choices": [{"index": 0, "turns": [text]}],
            "tstamp": time.time(),
            "total_output_tokens": tokens,
        }
        append(self._path(question.task), row)

    def _answers(self, answer: Answer | None, question: Question) -> bool:
        """Whether an answer is to this question, as it reads today."""
        return answer is not None and answer.answer_id == self._answer_id(question, answer.whole)

    def _answer_id(self, question: Question, text: str) -> str:
        """The id of an answer. It tells of which text of the question it is: LiveBench's file has no field for that."""
        parts = [question.question_id, question.text, self.model, self.made, text]
        return content_id(parts)[:_ID_DIGITS]

    def _path(self, task: str) -> Path:
        return self.data / "live_bench" / CATEGORY / task / "model_answer" / f"{self.model}.jsonl"

    def _answered(self, task: str) -> dict[str, Answer]:
        """The answers on disk by question. What made the answers is compared with the record, or recorded."""
        path = self._path(task)
        record = path.with_suffix(".json")
        if path.is_file() and not record.is_file():
            raise LiveBenchError(f"{path}: other answers lie there; give the new ones another --model name")
        if changed := changed_since(record, self.made):
            raise LiveBenchError(
                f"{path}: these answers were made with another {changed} ({record.name}); "
                "give the new ones another --model name"
            )
        cut_unfinished_line(path)
        return read_answers(path) if path.is_file() else {}
