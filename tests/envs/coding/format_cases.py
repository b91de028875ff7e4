"""Hand-made records of every format, and strategies that make many."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from envs.coding.formats.blob import pack
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from rlanything.core.types import Task

SUM = "print(sum(map(int, input().split())))"
text = st.text(max_size=20)
name = st.text("abcdefghijklmnop-_/ 0123456789é", min_size=1, max_size=12).filter(lambda s: s.strip())
identifier = st.sampled_from(["add", "maxSum", "f_1"])
json_value = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
value_text = json_value.map(json.dumps)


def stdin_case(stdin: str = "1 2\n", stdout: str = "3\n") -> dict[str, str]:
    return {"input": stdin, "output": stdout, "testtype": "stdin"}


def functional_case(arguments: str = "[1, 2]\n3", result: str = "6") -> dict[str, str]:
    return {"input": arguments, "output": result, "testtype": "functional"}


def livebench_question(**changes: Any) -> dict[str, Any]:
    """A question as LiveBench's question.jsonl holds it."""
    return {
        "question_id": "q1",
        "category": "coding",
        "task": "LCB_generation",
        "turns": ["Print the sum of two numbers."],
        "question_title": "sum",
        "public_test_cases": json.dumps([stdin_case()]),
        "private_test_cases": pack(json.dumps([stdin_case("5 5\n", "10\n")])),
        "original_json": {
            "question_title": "sum",
            "question_content": "Print the sum.",
            "platform": "atcoder",
            "contest_date": "2024-05-04 00:00:00",
            "starter_code": "",
            "difficulty": "easy",
            "metadata": "{}",
        },
        "livebench_release_date": "2024-06-24",
        "livebench_removal_date": "",
        "release_date": "2023-08-01",
        **changes,
    }


def livecodebench_problem(**changes: Any) -> dict[str, Any]:
    """A problem as LiveCodeBench's files hold it."""
    return {
        "question_title": "sum",
        "question_content": "Return the sum of numbers.",
        "platform": "leetcode",
        "question_id": "2828",
        "contest_id": "weekly",
        "contest_date": "2023-05-01T00:00:00",
        "starter_code": "class Solution:\n    def add(self, xs, y):\n        ",
        "difficulty": "easy",
        "public_test_cases": json.dumps([functional_case()]),
        "private_test_cases": pack(json.dumps([functional_case("[]\n0", "0")])),
        "metadata": '{"func_name": "add"}',
        **changes,
    }


def codecontests_row(**changes: Any) -> dict[str, Any]:
    """A row of CodeContests."""
    return {
        "name": "1548_C. The Three Little Pigs",
        "description": "Print the sum.",
        "public_tests": {"input": ["1 2\n"], "output": ["3\n"]},
        "private_tests": {"input": ["2 2\n"], "output": ["4\n"]},
        "generated_tests": {"input": ["9 1\n", "0 0\n"], "output": ["10\n", "0\n"]},
        "source": 2,
        "difficulty": 9,
        "solutions": {
            "language": [2, 3],
            "solution": ["int main(){}", "print(sum(map(int, input().split())))"],
        },
        "incorrect_solutions": {"language": [], "solution": []},
        "cf_contest_id": 1548,
        "cf_tags": ["math"],
        "time_limit": {"seconds": 1, "nanos": 500000000},
        "memory_limit_bytes": 256 * 2**20,
        "input_file": "",
        "output_file": "",
        **changes,
    }


def reference_item(**changes: Any) -> dict[str, Any]:
    """An item of the reference code's list."""
    return {
        "question": "Print the sum of a list.",
        "test_method": "stdio",
        "test_time_limit": 6,
        "test_input": ["5\n1 2 3 4 5\n", "1\n7\n"],
        "test_output": ["15", "7"],
        "example_input": ["1\n1\n"],
        "example_output": ["1"],
        **changes,
    }


def summing(**changes: Any) -> Task:
    """Print the sum of two numbers; `SUM` does."""
    record = reference_item(
        test_input=["1 2\n", "3 4\n"], test_output=["3", "7"], test_time_limit=1, **changes
    )
    return FORMATS["reference"].read(Record(record)).to_task()


stdin_rows = st.lists(st.builds(stdin_case, text, text), max_size=3)
value_rows = st.lists(
    st.builds(functional_case, st.lists(value_text, min_size=1, max_size=3).map("\n".join), value_text),
    max_size=3,
)


@st.composite
def lcb_tests(draw: st.DrawFn) -> dict[str, Any]:
    """Public and private tests with the metadata that goes with them; blobs and plain JSON."""
    function = draw(st.just("") | identifier)
    rows = value_rows if function else stdin_rows
    public, private = draw(rows), draw(rows.filter(bool))
    encode = draw(st.sampled_from([json.dumps, lambda r: pack(json.dumps(r))]))
    metadata = draw(st.dictionaries(st.sampled_from(["a", "b"]), json_value, max_size=2))
    return {
        "public_test_cases": json.dumps(public),
        "private_test_cases": encode(private),
        "metadata": json.dumps({**metadata, **({"func_name": function} if function else {})}),
    }


@st.composite
def livebench_questions(draw: st.DrawFn) -> dict[str, Any]:
    tests = draw(lcb_tests())
    prefix = draw(st.just("") | text)
    origin = {**livebench_question()["original_json"], "metadata": tests.pop("metadata")}
    return livebench_question(
        question_id=draw(name),
        turns=[draw(name)],
        task="coding_completion" if prefix else "LCB_generation",
        partial_solution=draw(st.just(prefix) | st.just(prefix or None)),
        original_json={**origin, "starter_code": draw(text), "difficulty": draw(text)},
        **tests,
    )


@st.composite
def livecodebench_problems(draw: st.DrawFn) -> dict[str, Any]:
    return livecodebench_problem(
        question_id=draw(name), question_content=draw(name), starter_code=draw(text), **draw(lcb_tests())
    )


@st.composite
def codecontests_rows(draw: st.DrawFn) -> dict[str, Any]:
    def tests(least: int) -> dict[str, list[str]]:
        pairs = draw(st.lists(st.tuples(text, text), min_size=least, max_size=3))
        return {"input": [i for i, _ in pairs], "output": [o for _, o in pairs]}

    limit = draw(
        st.none() | st.fixed_dictionaries({"seconds": st.integers(0, 20), "nanos": st.integers(0, 999)})
    )
    return codecontests_row(
        name=draw(name),
        description=draw(name),
        public_tests=tests(0),
        private_tests=tests(1),
        generated_tests=tests(0),
        difficulty=draw(st.integers(0, 29)),
        time_limit=limit,
        memory_limit_bytes=draw(st.just(0) | st.integers(1, 512).map(lambda mb: mb * 2**20)),
    )


@st.composite
def reference_items(draw: st.DrawFn) -> dict[str, Any]:
    pairs = draw(st.lists(st.tuples(text, text), min_size=1, max_size=4))
    return reference_item(
        question=draw(name),
        test_input=[i for i, _ in pairs],
        test_output=[o for _, o in pairs],
        test_time_limit=draw(st.integers(1, 60) | st.floats(0.1, 60)),
    )


RECORDS = {
    "livebench": livebench_questions(),
    "livecodebench": livecodebench_problems(),
    "codecontests": codecontests_rows(),
    "reference": reference_items(),
}
SAMPLES = {
    "livebench": livebench_question,
    "livecodebench": livecodebench_problem,
    "codecontests": codecontests_row,
    "reference": reference_item,
}
