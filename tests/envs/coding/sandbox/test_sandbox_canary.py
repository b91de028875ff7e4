"""Nothing that a box has seen is there for a later program: neither in memory nor anywhere else that it can read."""

from dataclasses import replace

import canary
import pytest
from sandbox_cases import BACKENDS, LIMITS, opened

from envs.coding.sandbox import Job, Status, Stdio

PATIENT = replace(LIMITS, cpu_s=20, wall_s=60)


@pytest.fixture(scope="module", params=BACKENDS)
def one_box(request):
    with opened(request, request.param) as sandbox:
        yield request.param != "subprocess", sandbox


@pytest.mark.parametrize("place", canary.planters(""))
def test_a_word_of_an_earlier_program_is_nowhere(one_box, place):
    sealed, sandbox = one_box
    word, replaced = canary.new_word(), sandbox.replaced
    search = Job(canary.search(word, sealed), [Stdio("")], PATIENT)
    *_, found = sandbox.judge([*canary.planters(word)[place], search])
    assert (found.status, found.outcomes[0].output) == (Status.OK, "[]\n"), found.outcomes[0].error
    assert sandbox.replaced == replaced


def test_the_search_finds_a_word_that_is_there(one_box):
    """In its own memory in three widths, in a file and its name, in the environment."""
    sealed, sandbox = one_box
    word = canary.new_word()
    plants = {
        "memory": "word = sys.stdin.readline().encode() + b'.'",
        "memory: wide": "word = sys.stdin.readline() + chr(0x20ac)\nsys.stdin = None",
        "memory: wider": "word = sys.stdin.readline() + chr(0x1f600)\nsys.stdin = None",
        "name in": "open(input(), 'w')",
        "file": "open('file', 'w').write(input())",
        "environment": "os.environ['x'] = input()",
    }
    jobs = [
        Job(f"import os, sys\n{plant}\n" + canary.search(word, sealed), [Stdio(word)], PATIENT)
        for plant in plants.values()
    ]
    for what, result in zip(plants, sandbox.judge(jobs), strict=True):
        assert what.partition(":")[0] in result.outcomes[0].output, (what, result)
