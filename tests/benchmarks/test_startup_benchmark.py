"""The times of common commands are measured on real starts; what must answer at once does not wait for torch."""

from __future__ import annotations

import resource
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.startup import starts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def heavy() -> float:
    """CPU seconds that torch and transformers alone take here: the lower of two starts."""

    def used() -> float:
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        return now.ru_utime + now.ru_stime

    marks = [used()]
    for _ in range(2):
        subprocess.run([sys.executable, "-c", "import torch, transformers"], check=True)
        marks.append(used())
    return min(later - earlier for earlier, later in pairwise(marks))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("words", "code"), [(("config", "check"), 0), (("--help",), 0), (("train", "--arm", "ful"), 2)]
)
def test_checks_answer_in_less_cpu_time_than_torch_and_transformers_take_to_import(words, code, heavy):
    found = starts.measure(words, ROOT, repeats=2)
    assert found.code == code
    assert 0 < found.cpu < 0.7 * heavy


def test_the_commands_exist(capsys):
    from rlanything.cli import build_parser

    parser = build_parser()
    for words in starts.COMMANDS:
        if words != ("--help",):
            assert callable(parser.parse_args(list(words)).run)
