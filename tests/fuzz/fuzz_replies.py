"""What models write: actions, verdicts, summaries, tests, programs, rewrites; and the answers of LiveBench's files."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import product
from pathlib import Path

from fuzz_mutations import json_bytes, line_bytes
from fuzz_target import Target, file_of, text_of

from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from envs.coding.livebench.answers import AnswerFiles
from envs.coding.livebench.install import recorded
from envs.coding.livebench.judgments import read_answers, read_judgments, tidy
from envs.coding.livebench.score_store import _read
from envs.coding.problem import Comparison, Problem
from envs.coding.programs import program_of, same_lines
from envs.coding.replies import rated_tests, read_problem, read_test, read_tests, write_problem, write_test
from envs.coding.sandbox.judge import same_text
from rlanything.buffer import Lineage, TaskBuffer, Version, read_snapshot, write_snapshot
from rlanything.core.exams import Question
from rlanything.core.thoughts import CLOSING, OPENING, after_thought
from rlanything.core.types import Direction, InvalidProposal, Task
from rlanything.loop.prompts import Prompts
from rlanything.loop.summaries import read_summary

ALFWORLD, CODING = AlfworldFamily(), CodingFamily()
FAMILIES = {"alfworld": ALFWORLD, "tokens": AlfworldFamily(edit="tokens"), "coding": CODING}
BOXED, WORDED = Prompts({}, "boxed_index", "boxed"), Prompts({}, "verbatim", "word")
MARKS = (
    b"<think>", b"</think>", b"```", b"```python\n", b"\\boxed{1}", b"\\boxed{-1}", b"\\boxed{", b"good",
    b"bad", b"test:", b" -> ",
    b"**Test Input:**\n```\n", b"**Test Output:**\n```\n", b"task:", b"object:", b"receptacle:", b"copies: 2",
    b"hidden: yes",
    b"destinations: 1", b'{"question": "a", "test_input": ["1"], "test_output": ["2"]}', b'{"question":',
    b"problem:", b"\xc2\xb2",
    "٣".encode(), "İ".encode(), "ﬁ".encode(),
)  # fmt: skip


@cache
def task_of(name: str) -> Task:
    """A generated task."""
    return FAMILIES[name].make("train", 1, 5)[0]


@cache
def problem(function: bool) -> Problem:
    """A problem of a file: a program that prints, or a function."""
    made = Problem.from_task(task_of("coding"))
    parts = {"source": {"format": "reference"}, "statement": "Add up.", "cases": made.cases}
    if function:
        parts |= {"function": "add", "compare": Comparison.VALUE, "statement": "Add two numbers."}
    return Problem(**parts)


def _say(text: str) -> None:
    actions = ["go to desk 1", "look", ""]
    answer = after_thought(text)
    assert answer is None or not (OPENING in answer or CLOSING in answer)
    for prompts in (BOXED, WORDED):
        action, valid = prompts.action(text, actions)
        assert not (valid and answer is None)
        action.encode()
        assert prompts.verdict(text) in (1, -1, None)
        prompts.reasoning(text).encode()


def _summary(text: str) -> None:
    summary, reason = read_summary(text)
    assert bool(summary) != bool(reason)
    assert "\n" not in summary
    summary.encode()


def _tests(text: str) -> None:
    for case in read_tests(text):
        again = write_test(case)
        rated_tests([case], [None, case], [None, 0.5, 1.0], 2)
        assert read_tests(again) or not (case.input.strip() and case.output.strip())
    for function in (False, True):
        try:
            read_test(text, problem(function))
        except ValueError as error:
            refused = error
        else:
            continue
        raise refused


def _program(text: str) -> None:
    for of in (problem(False), problem(True), Problem.from_task(task_of("coding"))):
        program_of(of, text)
    same_lines(text, text[::-1])
    same_text(text, text[::-1])


def stored(task: Task, folder: Path) -> None:
    """What becomes of an accepted rewrite: it is checked, shown, and stored in a buffer."""
    path = folder / "iter_0000.jsonl"
    write_snapshot(TaskBuffer((Lineage(0, (Version(0, task),)),)), path)
    assert read_snapshot(path).head(0) == task


def _rewrite(name: str, data: bytes, folder: Path) -> None:
    family = FAMILIES[name]
    task = family.parse(task_of(name), data.decode("utf-8", "replace"))
    if not family.validate(task):
        family.describe(task)
        stored(task, folder)


def _problem(data: bytes, folder: Path) -> None:
    refused: InvalidProposal | None = None
    for function in (False, True):
        try:
            found = read_problem(problem(function), data.decode("utf-8", "replace"), 1)
        except InvalidProposal as error:
            refused = error
            continue
        task = found.to_task({"split": "train"})
        if not CODING.validate(task):
            CODING.describe(task)
            write_problem(found)
            stored(task, folder)
        refused = None
    if refused:
        raise refused


def _rewrites(name: str) -> list[bytes]:
    family = FAMILIES[name]
    return [family.rewrite(task_of(name), way, n).encode() for n in range(3) for way in Direction]


def _types() -> list[bytes]:
    """Other types for the goal, where the room has some."""
    found = []
    for n, way in product(range(3), Direction):
        with suppress(InvalidProposal):
            found.append(FAMILIES["tokens"].rewrite(task_of("tokens"), way, n).encode())
    return found


def _answers(path: Path) -> None:
    read_answers(path)
    files = AnswerFiles(path.parents[4], "m", {"seed": 1})
    (path.with_suffix(".json")).write_text('{"seed": 1}')
    files.missing([Question("one", "LCB_generation", "?")])


def _answer_rows() -> list[bytes]:
    rows = [
        {
            "question_id": n,
            "answer_id": "a",
            "model_id": "m",
            "choices": [{"index": 0, "turns": [text]}],
            "tstamp": 1.5,
        }
        for n, text in (("one", "<think>hm</think>```python\nprint(1)\n```"), ("two", "x"))
    ]
    return [line_bytes(rows)]


def _judgments(path: Path) -> None:
    read_judgments(path)
    tidy(path)


def _judgment_rows() -> list[bytes]:
    row = {
        "task": "LCB_generation",
        "model": "m",
        "score": 1,
        "tstamp": 1.0,
        "category": "coding",
        "answer_id": "a",
    }
    return [line_bytes([{"question_id": "one", **row}, {"question_id": "two", **row, "score": 0}])]


def _grades() -> list[bytes]:
    row = {
        "question_id": "one",
        "model": "m",
        "grader": "sandbox",
        "of": "0" * 64,
        "score": 1,
        "lacks": "numpy",
    }
    return [line_bytes([row, {**row, "question_id": "two", "score": 0}])]


def _record() -> list[bytes]:
    import sys

    made = {
        "repository": "/nowhere",
        "commit": "0" * 40,
        "changed": False,
        "python": sys.executable,
        "version": "3.11.2",
        "packages": {"numpy": "2.0"},
    }
    return [json_bytes(made)]


def _installed(path: Path) -> None:
    made = recorded(path.parent)
    made.importable()
    assert made.identity


ACTIONS = [
    b"<think>the mug</think> \\boxed{2}",
    b"go to desk 1",
    b"The step was good.",
    b"It did nothing. \\boxed{-1}",
]
SUMMARIES = [
    rb"It is lost. \boxed{It opened {drawer} 1 twice. Then it left. It never looked.}",
    rb"<think>\boxed{no}</think> \boxed{\text{It took the wrong mug.}}",
]
WRITTEN = [
    b"First 1 + 2 = 3.\ntest: [1, 2] -> 3",
    b"**Test Input:**\n```\n[1, 2]\n3\n```\n\n**Test Output:**\n```\n[3]\n```\n",
]
PROGRAMS = [
    b"<think>easy</think>\n```python\nprint(int(input()) + 1)\n```\n",
    b"class Solution:\n    def add(self, a, b):\n        return a + b",
    b"1 2.0\n 3e1 x\n",
]
PROBLEMS = [
    b'Here: {"question": "Subtract.", "test_input": ["[1, 2]", "[3]\\n4"], "test_output": ["3", "7"]}',
    b'{"question": "Q", "test_input": ["1"], "test_output": ["[2]"]}',
]
ANSWERS = "data/live_bench/coding/LCB_generation/model_answer/m.jsonl"
TARGETS = [
    Target("actions-and-votes", text_of(_say), lambda: ACTIONS, words=MARKS),
    Target("summaries", text_of(_summary), lambda: SUMMARIES, words=MARKS),
    Target("written-tests", text_of(_tests), lambda: WRITTEN, words=MARKS),
    Target("programs", text_of(_program), lambda: PROGRAMS, words=MARKS),
    Target("rewritten-problem", _problem, lambda: PROBLEMS, words=MARKS),
    Target(
        "rewritten-chain",
        lambda data, folder: _rewrite("coding", data, folder),
        lambda: _rewrites("coding"),
        words=MARKS,
    ),
    Target(
        "rewritten-game",
        lambda data, folder: _rewrite("alfworld", data, folder),
        lambda: _rewrites("alfworld"),
        words=MARKS,
    ),
    Target(
        "rewritten-types",
        lambda data, folder: _rewrite("tokens", data, folder),
        _types,
        words=MARKS,
    ),
    Target("livebench-answers", file_of(ANSWERS, _answers), _answer_rows, "lines", MARKS, "m.json"),
    Target(
        "livebench-judgments",
        file_of("judgment.jsonl", _judgments),
        _judgment_rows,
        "lines",
        file="judgment.jsonl",
    ),
    Target("livebench-grades", file_of("grades.jsonl", _read), _grades, "lines", file="grades.jsonl"),
    Target("livebench-setup", file_of("livebench.json", _installed), _record, "json"),
]
