"""Tests in replies, and tests that are shown with their pass rates."""

from __future__ import annotations

import json

import pytest
from format_cases import livecodebench_problem
from hypothesis import example, given
from hypothesis import strategies as st

from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from envs.coding.problem import Case, Problem
from envs.coding.replies import InvalidTestError, rated_tests, read_problem, read_test, read_tests, write_test
from rlanything.core.coding_signals import pass_rates
from rlanything.core.types import InvalidProposal

PROBLEM = Problem("Add.", (Case("1 2", "3"),))


def test_a_line_and_a_block() -> None:
    assert read_test("so\ntest: 1 2 -> 3\nthen\n test:4 5->9 \nend", PROBLEM) == Case("4 5", "9")
    block = "**Test Input:**\n```\n1\n2\n```\n\n**Test Output:**\n```text\n3\n```\n**Explanation:** easy"
    assert read_test(block, PROBLEM) == Case("1\n2", "3")
    assert read_test(f"{block}\n{block.replace('1', '7')}", PROBLEM) == Case("7\n2", "3")
    assert read_test("**Test Input:** ```5```\n**Test Output:** ```6```", PROBLEM) == Case("5", "6")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("no test", "no line"),
        ("test: -> 3", "no input or no output"),
        ("test: 3 ->", "no input or no output"),
        ("**Test Output:**\n```3```\n**Test Input:**\n```3```", "no line"),
    ],
)
def test_what_is_no_test(reply: str, said: str) -> None:
    with pytest.raises(InvalidTestError, match=said):
        read_test(reply, PROBLEM)


@pytest.mark.parametrize("blanks", [" " * 39_000, "->" * 19_000, "test:" * 7_000])
def test_a_reply_that_repeats_itself_is_read_at_once(blanks: str) -> None:
    """By a pattern that tries every way to divide the blanks it would take hours."""
    assert read_test(f"test:{blanks}\ntest: 1 -> 2", PROBLEM) == Case("1", "2")


@pytest.mark.parametrize("text", ['{"a":[' * 6_600, '{"a":[' * 900 + "{}," * 11_000, "{" + " " * 39_000])
def test_of_objects_that_never_end_not_all_are_tried(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    decode = json.JSONDecoder.raw_decode

    def counted(self: json.JSONDecoder, s: str, idx: int = 0) -> tuple[object, int]:
        tried.append(idx)
        return decode(self, s, idx)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    with pytest.raises(InvalidProposal, match="no JSON object"):
        read_problem(PROBLEM, text, 1)
    assert len(tried) <= 100


def test_a_problem_is_found_behind_formulas_and_code() -> None:
    reply = json.dumps({"question": "Sum.", "test_input": ["1 {2"], "test_output": ["3"]})
    braces = "".join(f"$x_{{{k}}}$ {{'a': {k}}} {{}} {{" for k in range(500))
    assert read_problem(PROBLEM, f"{braces}\n{reply} as in {{x}}", 1).cases == (Case("1 {2", "3"),)


def test_arguments_of_a_function_are_json() -> None:
    problem = FORMATS["livecodebench"].read(Record(livecodebench_problem()))
    assert read_test("test: [1] -> 1", problem) == Case("[1]", "1")
    assert read_test(f"test: {nested(100)} -> 1", problem) == Case(nested(100), "1")
    for bad in ("[1 -> 1", "1 -> [1", f"{nested(101)} -> 1", f"1 -> {nested(984)}", f"1 -> {nested(5000)}"):
        with pytest.raises(InvalidTestError, match="must be JSON"):
            read_test(f"test: {bad}", problem)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


words = st.text(
    st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="`"), min_size=1, max_size=9
)
sides = words.map(str.strip).filter(lambda text: text and "->" not in text)


@given(first=sides, second=sides, lines=st.booleans())
def test_round_trip(first: str, second: str, lines: bool) -> None:
    separators = "\x85\u2028\u2029\x1c\x1d\x1e\x0b\x0c"
    if any(c in first + second for c in separators):
        return
    case = Case(f"{first}\n{second}" if lines else first, second)
    assert read_tests(write_test(case)) == [case]


@given(
    text=st.text(max_size=200)
    | st.lists(
        st.sampled_from(
            ["test:", "->", "```", "**Test Input:**", "**Test Output:**", "\n", " ", "1", "ab", "\r", "\x0b"]
        )
    ).map("".join)
)
@example(text="test:```->\r0")
def test_no_reply_raises_anything_else_and_what_was_read_is_written_and_read_again(text: str) -> None:
    try:
        found = read_test(text, PROBLEM)
    except InvalidTestError:
        return
    assert read_test(write_test(found), PROBLEM) == found


def test_pass_rates_stand_beside_their_tests() -> None:
    """The reference code dropped long tests and then counted rates from the start again."""
    own = [Case("1", "1"), Case("x" * 500, "2"), Case("3\n4", "7")]
    written = [Case("5", "5"), None, Case("1", "1")]
    rates = pass_rates([[True, False, True, None, False, True], [False, False, True, None, False, False]])
    lines = ["1. passed by 50%: 1 -> 1", "3. passed by 100%: 3\\n4 -> 7", "4. could not be run: 5 -> 5"]
    assert rated_tests(own, written, rates, 12) == "\n".join(lines)
    assert rated_tests(own, written, rates, 2) == "\n".join([lines[0], lines[2]])  # one of each kind
    assert rated_tests(own, [None], [0.5, 0.0, 1.0, 0.0], 2).startswith("1. passed by 50%: 1 -> 1\n3. ")
    with pytest.raises(ValueError, match="1 rates for 6 tests"):
        rated_tests(own, written, rates[:1], 12)
    assert (
        rated_tests([Case("x" * 500, "2")], [None], [0.0, 0.0], 12) == "no test is short enough to be shown"
    )
