"""Whatever a model writes is read in time that grows with its length, not with its square."""

from __future__ import annotations

import re

import pytest

from benchmarks import parsers

PARSERS = parsers.parsers()
QUADRATIC, LONG_S = 1.7, 0.05
"""A linear parser reads the longest text in 15 ms; a quadratic one needs seconds, and an exponent of 2."""


@pytest.mark.parametrize("name", PARSERS)
def test_every_parser_of_model_output_is_linear(name):
    found = parsers.growth(*PARSERS[name])
    assert found.exponent < QUADRATIC or found.seconds < LONG_S, found.text


def test_a_quadratic_parser_is_found():
    found = parsers.growth(lambda text: re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL), 1 << 13)
    assert found.exponent > QUADRATIC
    assert "<think>" in found.text
