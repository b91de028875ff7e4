"""The times of common commands are measured on real starts; what must answer at once takes little of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.startup import starts

ROOT = Path(__file__).parents[2]
LIMIT = 2.0
"""CPU seconds. Torch and transformers alone take more than twice that."""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("words", "code"), [(("config", "check"), 0), (("--help",), 0), (("train", "--arm", "ful"), 2)]
)
def test_checks_answer_in_less_than_two_seconds_of_the_cpu(words, code):
    found = starts.measure(words, ROOT, repeats=2)
    assert found.code == code
    assert 0 < found.cpu < LIMIT


def test_the_commands_exist(capsys):
    from rlanything.cli import build_parser

    parser = build_parser()
    for words in starts.COMMANDS:
        if words != ("--help",):
            assert callable(parser.parse_args(list(words)).run)
