"""Tasks of others: sets of programming problems, and games of ALFWorld's folders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from functools import cache, partial
from pathlib import Path
from tempfile import mkdtemp

from fuzz_mutations import json_bytes, line_bytes
from fuzz_replies import ALFWORLD, CODING, stored
from fuzz_target import Target, file_of

from envs.alfworld.files import read_game, write_game
from envs.coding.environment import opening
from envs.coding.formats.blob import pack, unpack
from envs.coding.formats.files import FORMATS, load, save
from envs.coding.livebench.answers import questions_of
from envs.coding.problem import Problem
from envs.coding.programs import job_of
from envs.coding.sandbox import Limits
from rlanything.core.types import Task

CASE = {"input": "1 2\n", "output": "3\n", "testtype": "stdin"}
CALL = {"input": "[1, 2]\n3", "output": "6", "testtype": "functional"}
QUESTION = {
    "question_id": "q1", "category": "coding", "task": "LCB_generation", "turns": ["Print the sum."],
    "public_test_cases": json.dumps([CASE]), "private_test_cases": pack(json.dumps([CASE])),
    "original_json": {"starter_code": "", "difficulty": "easy", "metadata": "{}"},
    "livebench_release_date": "2024-06-24", "livebench_removal_date": "", "release_date": "2023-08-01",
}  # fmt: skip
COMPLETION = {**QUESTION, "question_id": "q2", "task": "coding_completion", "partial_solution": "def f():"}
PROBLEM = {
    "question_title": "sum", "question_content": "Return the sum.", "platform": "leetcode", "question_id": "2828",
    "contest_id": "w", "contest_date": "2023-05-01T00:00:00", "starter_code": "class Solution:\n",
    "difficulty": "easy",
    "public_test_cases": json.dumps([CALL]), "private_test_cases": json.dumps([CALL]),
    "metadata": '{"func_name": "add"}',
}  # fmt: skip
ROW = {
    "name": "1548_C", "description": "Print the sum.", "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
    "private_tests": {"input": ["2 2\n"], "output": ["4\n"]}, "generated_tests": {"input": ["0 0\n"],
    "output": ["0\n"]},
    "difficulty": 9, "solutions": {"language": [2, 3], "solution": ["int main(){}", "print(3)"]},
    "time_limit": {"seconds": 1, "nanos": 500000000}, "memory_limit_bytes": 1 << 28, "input_file": "",
    "output_file": "",
}  # fmt: skip
ITEM = {
    "question": "Print the sum.", "test_method": "stdio", "test_time_limit": 6, "test_input": ["5\n1 2\n"],
    "test_output": ["15"], "example_input": ["1\n"], "example_output": ["1"],
}  # fmt: skip
SETS = {
    "livebench": line_bytes([QUESTION, COMPLETION]),
    "livecodebench": line_bytes([PROBLEM, {**QUESTION, **PROBLEM, "question_id": "1"}]),
    "codecontests": line_bytes([ROW]),
    "reference": json_bytes([ITEM]),
}


def _load(form: str, path: Path) -> None:
    """Everything that becomes of problems before a program is run."""
    problems, _ = load(path, form)
    save(path.with_name("again"), form, problems)
    for problem in problems:
        use(problem.to_task({"split": "train"}), path.parent)
        job_of(problem, "", problem.cases, Limits())
    if form == "livebench":
        questions_of([path], date(2024, 8, 1))


def use(task: Task, folder: Path) -> None:
    """A task of the coding family, as a run meets it."""
    assert not CODING.validate(task)
    opening(Problem.from_task(task))
    CODING.describe(task)
    stored(task, folder)


def _unpack(data: bytes, folder: Path) -> None:
    from rlanything.core.errors import UserError

    try:
        unpack(data.decode("latin-1"))
    except ValueError as error:  # what it promises
        raise UserError(str(error)) from None


@cache
def _game(number: int) -> Path:
    """A game on disk, made once."""
    root = Path(mkdtemp()) / "valid_seen"
    return write_game(ALFWORLD.make("in_domain", 2, 4)[number], root)


def _games(name: str) -> Callable[[], list[bytes]]:
    return lambda: [(_game(0) / name).read_bytes()]


def _play(name: str, data: bytes, folder: Path) -> None:
    """A game with one file exchanged, read and played."""
    place = folder / "valid_seen" / _game(0).parent.name / _game(0).name
    shutil.copytree(_game(0), place)
    (place / name).write_bytes(data)
    task = read_game(place)
    environment = ALFWORLD.environment()
    seen = environment.reset(task, 0)
    for action in (*seen.actions[:2], "look"):
        environment.step(action)
    environment.close()
    ALFWORLD.describe(task)
    ALFWORLD.demonstrate(task, 0, 0.0)
    stored(task, folder)


PDDL = (
    b"(",
    b")",
    b"(openable Fridge|+00.10|+00.20|+00.30)",
    b"(isClean ",
    b"agent1",
    b"loc|0|0|0|0",
    b"loc|1|2|3|30",
)
TARGETS = [
    *(
        Target(
            f"problems-{form}",
            file_of("question.jsonl", partial(_load, form)),
            lambda data=data: [data],
            "lines" if FORMATS[form].lines else "json",
            file="question.jsonl",
        )
        for form, data in SETS.items()
    ),
    Target("packed-tests", _unpack, lambda: [pack(json.dumps([CASE])).encode()]),
    *(
        Target(f"game-{short}", partial(_play, name), _games(name), form, words, file, examples)
        for short, name, form, words, file, examples in (
            ("goal", "traj_data.json", "json", (), ".json", 30),
            ("room", "initial_state.pddl", "", PDDL, "initial_state.pddl", 30),
            ("grammar", "game.tw-pddl", "json", (), "", 30),
        )
    ),
]
