"""Grading again: what is known is not asked again, what has changed is, and two graders' scores meet whenever asked."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import livebench_box
import pytest
from livebench_files import MADE, answer, graded, items_of, lines
from livebench_pairs import SUM, SUMS

from envs.coding.family import CodingFamily
from envs.coding.formats.record import FormatError
from envs.coding.livebench.graders import Grader, LiveBenchGrader, SandboxGrader
from envs.coding.livebench.grading import Grading, grade_items
from envs.coding.livebench.judgments import judgment_path, read_judgments
from envs.coding.sandbox import Limits, Sandbox, SandboxError, open_sandbox
from rlanything.files.atomic import write_text

TASK = "LCB_generation"
WRONG, RIGHT = "print(3)", SUMS[0]


class Broken(Sandbox):
    """One whose boxes never start."""

    limits = Limits(memory_mb=4096)

    def __init__(self) -> None:
        pass

    def judge(self, jobs: Any, progress: Any = None) -> Any:
        raise SandboxError("no boxes")


def answered(files: dict[str, Path], **texts: str) -> None:
    lines(files["answers"], [answer(name, text) for name, text in texts.items()])


def scores(files: dict[str, Path]) -> dict[str, int]:
    found = read_judgments(judgment_path(files["data"], TASK))
    return {question: row["score"] for (question, model), row in found.items() if model == "m"}


def contents(files: dict[str, Path]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in judgment_path(files["data"], TASK).parent.iterdir()}


def test_what_has_a_judgment_is_not_graded_again(files: dict[str, Path], family: CodingFamily) -> None:
    first = graded(files, family.sandbox())
    before = contents(files)
    again = graded(files, Broken())
    assert contents(files) == before
    assert (again.rows, again.again, again.failed) == (first.rows, set(), {})
    graded(files, family.sandbox(), model="b")
    keys = list(read_judgments(judgment_path(files["data"], TASK)))
    assert keys == [("one", "b"), ("one", "m"), ("two", "b"), ("two", "m")]


def test_another_answer_is_graded_again_even_under_the_same_id(
    files: dict[str, Path], family: CodingFamily
) -> None:
    answered(files, one=WRONG, two=WRONG)
    assert graded(files, family.sandbox()).again == set()
    assert scores(files) == {"one": 0, "two": 0}
    answered(files, one=RIGHT, two=WRONG)
    outcome = graded(files, family.sandbox())
    assert ([row["score"] for row in outcome.rows], outcome.again) == ([1, 0], {"one"})
    assert scores(files) == {"one": 1, "two": 0}


def test_another_question_under_the_same_id_is_graded_again(
    files: dict[str, Path], family: CodingFamily
) -> None:
    answered(files, one=RIGHT, two=RIGHT)
    graded(files, family.sandbox())
    tests = json.loads(SUM["public_test_cases"])
    harder = json.dumps([{**tests[0], "output": "4\n"}])
    dates = {"livebench_release_date": "2024-08-31"}
    rows = [
        {**SUM, "question_id": "one", "public_test_cases": harder},
        {**SUM, "question_id": "two", **dates},
    ]
    lines(files["questions"], rows)
    assert graded(files, family.sandbox()).again == {"one"}
    assert scores(files) == {"one": 0, "two": 1}


def test_a_judgment_of_which_nothing_is_known_is_made_again(
    files: dict[str, Path], family: CodingFamily
) -> None:
    """LiveBench's own, or one whose process was killed before it wrote what the score is of."""
    path = judgment_path(files["data"], TASK)
    lines(
        path,
        [{"question_id": "one", "model": "m", "score": 0}, {"question_id": "x", "model": "b", "score": 1}],
    )
    assert graded(files, family.sandbox()).again == {"one"}
    assert scores(files) == {"one": 1, "two": 0}
    assert read_judgments(path)["x", "b"]["score"] == 1
    path.unlink()
    assert graded(files, family.sandbox()).again == {"one", "two"}
    assert scores(files) == {"one": 1, "two": 0}


def test_lines_that_were_cut_off_are_made_again(files: dict[str, Path], family: CodingFamily) -> None:
    graded(files, family.sandbox())
    whole = scores(files)
    for name in ("ground_truth_judgment.jsonl", "grades.jsonl"):
        path = judgment_path(files["data"], TASK).with_name(name)
        text = path.read_text()
        path.write_text(text[:-30])
        graded(files, family.sandbox())
        assert scores(files) == whole
        path.write_text("{\n" + text)
        with pytest.raises(FormatError, match=rf"{name}:1: not JSON"):
            graded(files, family.sandbox())
        path.write_text(text)


def test_a_record_that_cannot_be_read_is_told(files: dict[str, Path], family: CodingFamily) -> None:
    graded(files, family.sandbox())
    record = judgment_path(files["data"], TASK).with_name("grading.json")
    for text, message in (('{"grader": "ou', "not JSON"), ("[]", "expected a JSON object")):
        record.write_text(text)
        with pytest.raises(FormatError, match=rf"grading.json: {message}.* run again what wrote it"):
            graded(files, family.sandbox())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "made" / "grading.json"
    write_text(path, "before")

    def killed(source: Path, target: Path) -> None:
        assert source.read_text() == "after"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "after")
    assert path.read_text() == "before"


def test_a_broken_sandbox_leaves_no_judgment(files: dict[str, Path], family: CodingFamily) -> None:
    """Not even one of another answer."""
    outcome = graded(files, Broken())
    assert outcome.failed == {("ours", "one"): "no boxes", ("ours", "two"): "no boxes"}
    assert not judgment_path(files["data"], TASK).exists()
    graded(files, family.sandbox())
    answered(files, one=RIGHT, two=WRONG)
    assert [row["question_id"] for row in graded(files, Broken()).rows] == ["two"]
    assert scores(files) == {"two": 0}


def both(files: dict[str, Path], *graders: Grader) -> Grading:
    return grade_items(items_of(files), "m", files["data"], graders, lambda *_: None)


def test_two_graders_are_compared_whenever_that_is_asked(
    files: dict[str, Path], family: CodingFamily, tmp_path: Path
) -> None:
    """The grader that stands in for LiveBench's takes an answer's word for its score."""
    theirs = LiveBenchGrader(livebench_box.stand_in(tmp_path / "repository"), 2)
    ours, broken = SandboxGrader(family.sandbox(), 2, MADE), SandboxGrader(Broken(), 2, MADE)
    answered(files, one="score = 1", two="score = 0")
    assert both(files, theirs).compared == 0
    first = both(files, theirs, ours)
    assert (first.compared, first.different) == (2, ["one: livebench 1, ours 0"])
    before = contents(files)
    again = both(files, theirs, broken)
    assert (again.compared, again.different, again.failed) == (2, first.different, {})
    assert contents(files) == before
    assert scores(files) == {"one": 1, "two": 0}
    answered(files, one="score = 0", two="score = 0")
    changed = both(files, theirs, ours)
    assert (changed.compared, changed.different, changed.again) == (2, [], {"one"})
    answered(files, one="score = 0", two="no score")
    lost = both(files, theirs, ours)
    assert (lost.compared, list(lost.failed), [row["question_id"] for row in lost.rows]) == (
        1,
        [("livebench", "two")],
        ["one"],
    )
    assert scores(files) == {"one": 0}


def test_our_grader_works_at_several_answers_at_a_time(files: dict[str, Path], tmp_path: Path) -> None:
    """Each program waits for the files of all others. In boxes that isolate they could not meet."""
    names, place = [f"q{k}" for k in range(4)], tmp_path / "meeting"
    place.mkdir()
    question = {**SUM, "private_test_cases": "[]"}
    lines(files["questions"], [{**question, "question_id": name} for name in names])
    meeting = (
        "import pathlib, time\n"
        f"place = pathlib.Path({str(place)!r})\n"
        "(place / {name!r}).touch()\n"
        f"while len(list(place.iterdir())) < {len(names)}: time.sleep(0.05)\n{RIGHT}"
    )
    answered(files, **{name: meeting.format(name=name) for name in names})
    limits = Limits(memory_mb=4096, wall_s=30)
    with open_sandbox("subprocess", workers=4, limits=limits, trusted=True) as sandbox:
        outcome = grade_items(
            items_of(files), "m", files["data"], [SandboxGrader(sandbox, 4, MADE)], lambda *_: None
        )
    assert [row["score"] for row in outcome.rows] == [1, 1, 1, 1]
