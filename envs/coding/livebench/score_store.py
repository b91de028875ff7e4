"""The scores of a model's answers to one task, in LiveBench's own file and in one of ours.

<task>/model_judgment/ground_truth_judgment.jsonl    as LiveBench writes it; names an answer by its id alone
<task>/model_judgment/grading.json                   what made the judgments
<task>/model_judgment/grades.jsonl                   every grader's score, with a hash of what it is the score of
"""

from __future__ import annotations

import time
from pathlib import Path

from envs.coding.formats import livebench
from envs.coding.livebench.appending import append, changed_since, cut_unfinished_line
from envs.coding.livebench.boxed_grader import Grade
from envs.coding.livebench.graders import Grader
from envs.coding.livebench.install import LiveBenchError
from envs.coding.livebench.judgments import judgment, judgment_path, read_judgments, read_records, tidy
from envs.coding.livebench.selection import Item
from rlanything.core.ids import content_id
from rlanything.core.types import Json

RECORD = "grading.json"
GRADES = "grades.jsonl"
_KEY = ("question_id", "model", "grader")


class ScoreStore:
    """Scores of one model's answers to a task's questions; each is on disk as soon as it is kept.

    A score holds while question, answer and grader are the ones that it was given for.
    """

    def __init__(self, data: Path, task: str, model: str, judge: Grader) -> None:
        """`judge`: the grader whose scores are the judgments.

        Raises `LiveBenchError` where those on disk are another's, `FormatError` for a file that cannot be read.
        """
        self._model, self._judge = model, judge
        self._judgments = judgment_path(data, task)
        self._grades = self._judgments.with_name(GRADES)
        record = self._judgments.with_name(RECORD)
        if changed := changed_since(record, judge.made):
            raise LiveBenchError(
                f"{record}: the judgments beside it were made with other {changed}; name another folder with --data"
            )
        cut_unfinished_line(self._judgments)
        cut_unfinished_line(self._grades)
        self._rows = read_judgments(self._judgments)
        self._known = _read(self._grades)
        self._subjects: dict[tuple[str, str], str] = {}
        self._lost: set[tuple[str, str]] = set()

    def grade(self, item: Item, grader: Grader) -> Grade | None:
        """The score of an answer; None: there is none, or it is of another answer."""
        row = self._known.get(self._key(item, grader))
        if row is None or row["of"] != self._subject(item, grader):
            return None
        if grader is self._judge and self.judgment(item).get("score") != row["score"]:
            return None
        return Grade(int(row["score"]), lacks=row.get("lacks", ""))

    def graded(self, item: Item, grader: Grader) -> bool:
        """Whether there is a score to the question by that grader, possibly of another answer."""
        judged = grader is self._judge and bool(self.judgment(item))
        return judged or self._key(item, grader) in self._known

    def judgment(self, item: Item) -> dict[str, Json]:
        """The judgment of the model's answer to a question, as LiveBench writes it; empty where there is none."""
        found: dict[str, Json] = self._rows.get((item.answer.question_id, self._model), {})
        return found

    def keep(self, item: Item, grader: Grader, score: int, lacks: str) -> None:
        """Write a score. The judgment goes first: one without its line in our file is made again."""
        if grader is self._judge:
            row = judgment(item.answer, item.task, self._model, score, time.time())
            append(self._judgments, row)
            self._rows[item.answer.question_id, self._model] = row
        key = self._key(item, grader)
        names = dict(zip(_KEY, key, strict=True))
        self._known[key] = {**names, "of": self._subject(item, grader), "score": score}
        if lacks:
            self._known[key]["lacks"] = lacks
        append(self._grades, self._known[key])

    def lose(self, item: Item, grader: Grader) -> None:
        """Drop the judgment of a question whose present answer could not be graded."""
        if grader is self._judge and self._rows.pop((item.answer.question_id, self._model), None):
            self._lost.add((item.answer.question_id, self._model))

    def close(self) -> None:
        """Leave one judgment for each question and model, as LiveBench does."""
        if self._judgments.is_file():
            tidy(self._judgments, self._lost)

    def _key(self, item: Item, grader: Grader) -> tuple[str, str, str]:
        return item.answer.question_id, self._model, grader.name

    def _subject(self, item: Item, grader: Grader) -> str:
        """A hash of question, answer and grader: what a score is the score of."""
        key = item.answer.question_id, grader.name
        if key not in self._subjects:
            parts = [livebench.write(item.problem), item.answer.text, dict(grader.made)]
            self._subjects[key] = content_id(parts)
        return self._subjects[key]


def _read(path: Path) -> dict[tuple[str, str, str], dict[str, Json]]:
    """The lines of our file by question, model and grader; the last one counts. Raises `FormatError`."""
    found: dict[tuple[str, str, str], dict[str, Json]] = {}
    for record in read_records(path) if path.is_file() else ():
        question, model, grader = (record.name(name) for name in _KEY)
        row = {"of": record.text("of"), "score": record.number("score"), "lacks": record.text("lacks", "")}
        found[question, model, grader] = row
    return found
