"""How values and ended processes are told in messages."""

from __future__ import annotations

from math import nextafter

import pytest

from rlanything.core.printable import counted, ended, percents, shown, tell


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (0, "ended with exit code 0"),
        (3, "ended with exit code 3"),
        (-9, "was killed by SIGKILL"),
        (-40, "was killed by signal 40"),
        (-999, "was killed by signal 999"),
    ],
)
def test_how_a_process_ended_is_told_also_by_a_signal_without_a_name(code, says):
    assert ended(code) == says


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "null"),
        (5, "5"),
        ([1, "a"], "[1, 'a']"),
        (16**5000, "a number of 20001 bits"),
        ({"a": [-(16**5000)]}, "{'a': [a number of 20001 bits]}"),
    ],
    ids=["null", "number", "list", "bits", "nested"],
)
def test_a_value_in_a_message_is_short(value, says):
    assert shown(value) == says


def test_a_long_value_is_cut():
    assert len(shown("x" * 10_000)) <= 200
    assert shown(["x" * 190] * 6).endswith("...")


def test_a_noun_has_its_number():
    assert [counted(n, "seed") for n in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


def test_a_message_moves_no_cursor_whatever_a_folder_is_called(capsys):
    tell("results: \x1b[2Jruns\nread them")
    assert capsys.readouterr().err == "rlanything: results: \\x1b[2Jruns\nread them\n"


@pytest.mark.parametrize(
    ("value", "limit", "says"),
    [
        (1.0, 0.9, ("100%", "90%")),
        (0.904, 0.9, ("90.4%", "90.0%")),
        (0.90001, 0.9, ("90.001%", "90.000%")),
        (0.0123, 0.008, ("1.2%", "0.8%")),
        (0.5, 0.0, ("50%", "0%")),
    ],
)
def test_a_share_above_its_limit_is_not_written_as_equal_to_it(value, limit, says):
    assert percents(value, limit) == says


def test_the_nearest_share_above_a_limit_is_written_as_another_number():
    found, allowed = percents(nextafter(0.9, 1), 0.9)
    assert found != allowed
