"""Questions, answers and judgments in LiveBench's files, and grading them with our grader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from livebench_pairs import SUM, SUMS, fenced

from envs.coding.livebench.graders import SandboxGrader
from envs.coding.livebench.grading import Grading, grade_items
from envs.coding.livebench.judgments import read_answers
from envs.coding.livebench.selection import LATEST, Item, select
from envs.coding.sandbox import Sandbox

MADE = {"backend": "bwrap", "image": None, "packages": {}}


def answer(name: str, text: str) -> dict[str, Any]:
    """A line of LiveBench's model_answer files."""
    choices = [{"index": 0, "turns": [text]}]
    return {"question_id": name, "answer_id": f"a-{name}", "model_id": "m", "choices": choices}


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def made_files(folder: Path) -> dict[str, Path]:
    """Three questions and the answers to them: right, wrong, and to a question that was removed."""
    questions = [
        {**SUM, "question_id": "one"},
        {**SUM, "question_id": "two", "livebench_release_date": "2024-08-31"},
        {**SUM, "question_id": "old", "livebench_removal_date": "2024-08-31"},
    ]
    answers = [
        answer("one", f"<think>```hm```</think>{fenced(SUMS[0])}"),
        answer("two", "print(3)"),
        answer("old", ""),
    ]
    return {
        "questions": lines(folder / "question.jsonl", questions),
        "answers": lines(folder / "m.jsonl", answers),
        "data": folder / "data",
    }


def items_of(files: dict[str, Path]) -> list[Item]:
    return select(files["questions"], read_answers(files["answers"]), LATEST)[0]


def graded(files: dict[str, Path], sandbox: Sandbox, model: str = "m") -> Grading:
    return grade_items(
        items_of(files), model, files["data"], [SandboxGrader(sandbox, 1, MADE)], lambda *_: None
    )
