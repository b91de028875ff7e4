"""Tests and rewritten problems as text: read from the untrusted replies of models, and written for their prompts.

A test is a line `test: INPUT -> OUTPUT` or, where either side has several lines, the reference code's two blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest

from envs.coding.formats.record import FormatError, Record
from envs.coding.problem import Case, Problem, ProblemError, require_values, values_of
from rlanything.core.errors import ModelOutputError
from rlanything.core.types import InvalidProposal, Json

LONGEST = 40_000
"""Characters of a reply that are read, from its end."""
LONGEST_SHOWN = 100
"""Most characters of an input or output of a test that is shown to a model; longer ones are left out.

Both are the reference code's (sample/llm_env_rollout.py). It also has a cut at 800, which comes after and never acts.
"""
BROKEN = 100
"""Broken JSON objects after which the search stops: each may cost a scan of the whole reply."""
_OPENING = re.compile(r'\{\s{0,99}["}]')
"""The beginning of a JSON object, which formulas and code seldom contain."""
UNCHANGED = "the problem is the one that was to be rewritten"
MARK, ARROW = "test:", "->"
_BLOCK = re.compile(r"\*\*Test (Input|Output):\*\*\s*+```[a-z]*+\n?+(.*?)```", re.DOTALL)


class InvalidTestError(ModelOutputError):
    """A reply without a test; the message says why."""


def read_test(reply: str, problem: Problem) -> Case:
    """The last test in a reply. Raises `InvalidTestError`: no test, an empty side, or arguments that are no JSON."""
    found = read_tests(reply)
    if not found:
        raise InvalidTestError(
            "no line `test: INPUT -> OUTPUT` and no blocks **Test Input:** and **Test Output:**"
        )
    case = found[-1]
    if not case.input.strip() or not case.output.strip():
        raise InvalidTestError("the test has no input or no output")
    if problem.function:
        _require_values(case)
    return case


def read_tests(reply: str) -> list[Case]:
    """All tests of a reply, in their order."""
    text = reply[-LONGEST:]
    blocks = _BLOCK.findall(text)
    pairs = [
        Case(first[1].strip("\n"), second[1].strip("\n"))
        for first, second in pairwise(blocks)
        if (first[0], second[0]) == ("Input", "Output")
    ]
    return pairs or [Case(given.strip(), expected.strip()) for given, expected in _lines(text)]


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The text before and after the first arrow of each line that is a test; takes linear time."""
    for line in text.split("\n"):
        mark, _, rest = line.strip(" \t").partition(MARK)
        given, arrow, expected = rest.partition(ARROW)
        if not mark and arrow:
            yield given, expected


def write_test(case: Case) -> str:
    """The reply that `read_test` reads as this test."""
    plain = all(side == side.strip() and "\n" not in side for side in (case.input, case.output))
    if plain and ARROW not in case.input:
        return f"{MARK} {case.input} {ARROW} {case.output}"
    return f"**Test Input:**\n```\n{case.input}\n```\n\n**Test Output:**\n```\n{case.output}\n```"


def rated_tests(
    own: Sequence[Case], written: Sequence[Case | None], rates: Sequence[float | None], most: int
) -> str:
    """Tests with the share of programs that pass each, for the adapter.

    rates: one for each test, of the problem's own tests and then of the written ones
    (`core.coding_signals.pass_rates`). At most `most` tests are shown, as many of both kinds where there are enough.
    Tests that are long, repeated or unreadable (None) are left out; the others keep their numbers. Raises `ValueError`
    unless there is one rate for each test.
    """
    cases = [*own, *written]
    if len(cases) != len(rates):
        raise ValueError(f"{len(rates)} rates for {len(cases)} tests")
    numbers: dict[Case, int] = {}
    for number, case in enumerate(cases, 1):
        if case is not None and _is_short(case):
            numbers.setdefault(case, number)
    shown = {number: case for case, number in numbers.items()}
    kinds = [n for n in shown if n <= len(own)], [n for n in shown if n > len(own)]
    ranked = [n for pair in zip_longest(*kinds) for n in pair if n is not None]
    lines = [f"{n}. {_share(rates[n - 1])}: {shown_test(shown[n])}" for n in sorted(ranked[:most])]
    return "\n".join(lines) or "no test is short enough to be shown"


def shown_test(case: Case) -> str:
    """A test on one line, as models read it."""
    return (
        f"{_shown(case.input)} -> {_shown(case.output)}" if _is_short(case) else "a test too long to be shown"
    )


def write_problem(problem: Problem) -> str:
    """The problem in the form of a reply, with its short tests."""
    short = [case for case in problem.cases if _is_short(case)]
    return json.dumps(
        {
            "question": problem.statement,
            "test_input": [case.input for case in short],
            "test_output": [case.output for case in short],
        },
        ensure_ascii=False,
        indent=1,
    )


def read_problem(parent: Problem, reply: str, least: int) -> Problem:
    """The problem that an adapter's reply asks for, with the parent's limits. Raises `InvalidProposal`.

    The parent's statement with other tests is refused, and so are tests that contradict each other. Whether programs
    agree on the tests is seen when the problem is tried.
    """
    objects = [item for item in _objects(reply[-LONGEST:]) if "question" in item]
    if not objects:
        raise InvalidProposal("the reply has no JSON object with question, test_input and test_output")
    try:
        record = Record(objects[-1])
        question, inputs, outputs = (
            record.name("question"),
            record.texts("test_input"),
            record.texts("test_output"),
        )
    except FormatError as error:
        raise InvalidProposal(str(error)) from None
    if len(inputs) != len(outputs) or len(inputs) < least:
        raise InvalidProposal(
            f"{len(inputs)} inputs and {len(outputs)} outputs; as many, and at least {least}"
        )
    if question.split() == parent.statement.split():
        raise InvalidProposal(UNCHANGED)
    cases = tuple(Case(i, o) for i, o in zip(inputs, outputs, strict=True))
    require_agreeing(cases)
    try:
        found = replace(
            parent,
            statement=question.strip(),
            cases=cases,
            public=0,
            solution="",
            source={"format": "rewritten"},
        )
        require_values(found)
    except ProblemError as error:
        raise InvalidProposal(str(error)) from None
    return found


def require_agreeing(cases: Sequence[Case]) -> None:
    """Raise `InvalidProposal` for repeated inputs and for tests without an output."""
    seen: dict[str, tuple[int, str]] = {}
    for number, case in enumerate(cases, 1):
        if not case.output.strip():
            raise InvalidProposal(f"test {number} expects no output")
        first, output = seen.setdefault(case.input.strip(), (number, case.output.strip()))
        if output != case.output.strip():
            raise InvalidProposal(f"tests {first} and {number} contradict each other")
        if first != number:
            raise InvalidProposal(f"tests {first} and {number} are the same")


def _objects(text: str) -> Iterator[dict[str, Json]]:
    """The outermost JSON objects in a text."""
    decoder, place, failed = json.JSONDecoder(), 0, 0
    while failed < BROKEN and (found := _OPENING.search(text, place)):
        try:
            value, place = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            place, failed = found.start() + 1, failed + 1
        else:
            yield value


def _require_values(case: Case) -> None:
    try:
        values_of(case)
    except ValueError as error:
        raise InvalidTestError(f"arguments and result must be JSON: {error}") from None


def _is_short(case: Case) -> bool:
    return max(len(case.input), len(case.output)) <= LONGEST_SHOWN


def _share(rate: float | None) -> str:
    return "could not be run" if rate is None else f"passed by {rate:.0%}"


def _shown(text: str) -> str:
    return text.strip("\n").replace("\n", "\\n")
