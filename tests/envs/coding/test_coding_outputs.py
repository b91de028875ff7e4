"""Which programs write the same on the inputs of written tests, in the real sandbox."""

from __future__ import annotations

import pytest
from format_cases import SUM, livecodebench_problem, reference_item

from envs.coding.family import CodingFamily
from envs.coding.formats.files import FORMATS
from envs.coding.formats.record import Record
from rlanything.core.unittests import ComparesOutputs, Outputs

SPACED = "a, b = map(int, input().split())\nprint(' ', a + b)"
PRODUCT = "a, b = map(int, input().split())\nprint(a * b)"
CRASH = "print(1 // 0)"
TESTS = ["test: 1 2 -> 3", "no test", "test: 2 2 -> 4", "test: 1 2 -> 2"]
ADD = FORMATS["reference"].read(Record(reference_item(test_time_limit=1))).to_task()
FUNCTION = FORMATS["livecodebench"].read(Record(livecodebench_problem())).to_task()


def test_programs_are_grouped_by_what_they_write_whatever_a_test_expects(family: CodingFamily):
    assert isinstance(family, ComparesOutputs)
    found = family.outputs(ADD, [SUM, SPACED, PRODUCT, CRASH, SUM], TESTS)
    assert found == Outputs(
        (0, None, 2, 0),
        ((0, None, 0, 0), (0, None, 0, 0), (2, None, 0, 2), (None, None, None, None), (0, None, 0, 0)),
    )


def test_results_of_functions_are_compared_as_values(family: CodingFamily):
    name = FUNCTION.payload["function"]
    first, *_ = FUNCTION.payload["cases"]
    answers = [
        f"class Solution:\n    def {name}(self, *a):\n        print({k})\n        return {value}"
        for k, value in enumerate(("[1]", "(1,)", "[2]"))
    ]

    test = f"**Test Input:**\n```\n{first[0]}\n```\n**Test Output:**\n```\n{first[1]}\n```"
    assert family.outputs(FUNCTION, answers, [test]).written == ((0,), (0,), (2,))


@pytest.mark.parametrize("tests", [[], ["no test"]])
def test_without_a_test_nothing_is_run(family: CodingFamily, tests, monkeypatch):
    monkeypatch.setattr(type(family.sandbox()), "judge", lambda *_: pytest.fail("something was run"))
    nothing = (None,) * len(tests)
    assert family.outputs(ADD, [SUM, PRODUCT], tests) == Outputs(nothing, (nothing, nothing))


def test_no_program_writes_nothing(family: CodingFamily):
    assert family.outputs(ADD, [], TESTS) == Outputs((0, None, 2, 0), ())
