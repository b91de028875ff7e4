"""Tokens of both contexts are counted, and what the engine is there to share is shared."""

from __future__ import annotations

import pytest

from benchmarks import contexts
from rlanything.loop.prompts import NAMES

TINY = contexts.Workload(tasks=1, rollouts=2, steps=3, votes=2, reply=2)


@pytest.mark.parametrize("context", NAMES)
def test_prompts_are_read_together_where_they_begin_alike(context):
    found = contexts.measure(context, TINY)
    assert found.keys() == {"policy", "reward"}
    assert 0 < found["policy"].read < found["policy"].prompts
    assert 0 < found["reward"].read < found["reward"].prompts / 2  # two votes share a prompt
    assert found["policy"].rows == (2 if context == "chat" else 2 * 3)
    assert found["reward"].rows == 2
