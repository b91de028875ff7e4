"""Metrics of written tests, and the warning that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.coding_signals import CodingCounts, counts
from rlanything.loop.group import Group
from rlanything.loop.metrics import PATIENCE, last_values
from rlanything.rewards.unit_tests.writer import examined


def unit_test_metrics(groups: Sequence[Group]) -> dict[str, float]:
    """The number of tests; shares of unreadable tests, of right tests, and of tests that detect wrong programs.

    Empty where no test was asked for.
    """
    tables = [examined(group).tables for group in groups]
    readable = [known for table in tables for known in table.readable]
    if not readable:
        return {}
    tried = [counts(t.dataset, t.generated, t.readable) for t in tables if t.dataset]
    rates = sum(tried, CodingCounts()).rates
    return {
        "tests": float(len(readable)),
        "reward_tokens": float(sum(len(t.response_ids) for g in groups for t in examined(g).tests)),
        "invalid_tests": 1.0 - sum(readable) / len(readable),
        "ut": rates["ut"],
        "detect": rates["detect"],
    }


def warnings(history: Sequence[Mapping[str, float | None]], patience: int = PATIENCE) -> list[str]:
    """Messages about problems of the tests in the last `patience` iterations."""
    invalid = last_values(history, "invalid_tests", patience)
    if invalid and min(invalid) > 0.5:
        return [f"{invalid[-1]:.0%} of the tests hold no test that can be read: check the judge template."]
    return []
