"""The rewards of programs that pages and exports show are those that trained."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlanything.core.coding_signals import program_rewards
from rlanything.core.unittests import Tables
from rlanything.rollouts import unit_tests
from rlanything.rollouts.page import why_not

TABLES = Tables(("a", "b"), ((True,), (True,)), ((True, True), (False, True)))
"""Two programs that pass the task's own test; the first written test shows a fault of the second."""


@pytest.mark.parametrize(("written", "second"), [("right", 2.0), ("all", 1.5)])
def test_which_written_tests_count_is_the_runs_setting(written, second):
    terms = SimpleNamespace(
        arm=SimpleNamespace(lambda_of=lambda signals: 1.0), signals=SimpleNamespace(written=written)
    )
    found = unit_tests._rewards(TABLES, terms)
    assert found == [2.0, second]
    assert found == program_rewards(TABLES.dataset, TABLES.generated, TABLES.readable, 1.0, written)


@pytest.mark.parametrize(
    ("steps", "reward", "reason"),
    [
        ((), None, "it has no step"),
        (("code",), None, "one of the task's own tests could not be run on its program"),
        (("code",), 1.0, "all its advantages are 0"),
    ],
)
def test_a_page_says_why_a_program_does_not_train(steps, reward, reason):
    trajectory = SimpleNamespace(counts=True, steps=steps)
    record = SimpleNamespace(
        episode=SimpleNamespace(advantages=None, trajectory=trajectory), trains=True, proposal=None
    )
    chosen = SimpleNamespace(record=record, tries=SimpleNamespace(accuracy=0.5))
    terms = SimpleNamespace(
        arm=SimpleNamespace(outcome=True), signals=SimpleNamespace(policy_min=0.0, policy_max=1.0)
    )
    assert why_not(chosen, terms, {"steps": [{"reward": reward} for _ in steps]}) == reason
