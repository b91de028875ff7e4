"""The memory for keys and values that all engines and servers of a process share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.errors import UserError
from rlanything.engines.vllm.budget import Budget


class Name:
    """An engine, for a budget."""


def test_a_budget_is_shared_by_those_that_wait_in_proportion_to_what_they_need():
    budget, (a, b, c) = Budget(), (Name(), Name(), Name())
    for name, need in ((a, 10), (b, 10), (c, 40)):
        budget.join(name, 900, need)
    assert budget.take(a, 900) == 150
    budget.leave(c)
    assert budget.take(b, 900) == 750
    budget.leave(a)
    budget.join(c, 900, 40)
    assert budget.take(c, 900) == 150
    assert budget.take(c, 900) == 150, "what it had is given back first"
    budget.join(c, 900, 40)
    assert budget._taken[c] == 150, "an engine that is known stays as it is"


@given(
    needs=st.lists(st.integers(1, 1000), min_size=1, max_size=6), spare=st.integers(0, 5000), data=st.data()
)
def test_whoever_joined_gets_what_it_needs_in_any_order_and_all_together_no_more_than_there_is(
    needs, spare, data
):
    budget, total = Budget(), sum(needs) + spare
    engines = [Name() for _ in needs]
    for engine, need in zip(engines, needs, strict=True):
        budget.join(engine, total, need)
    order = data.draw(st.permutations(range(len(needs))))
    parts = [(budget.take(engines[place], total), needs[place]) for place in order]
    assert all(part >= need for part, need in parts)
    assert sum(part for part, _ in parts) <= total
    with pytest.raises(UserError, match=f"the {len(needs) + 1} engines of this process need"):
        budget.join(Name(), total, spare + 1)


def test_a_budget_that_is_too_small_says_what_is_enough():
    budget, (a, b) = Budget(), (Name(), Name())
    budget.join(a, 2**30, 3 * 2**28 + 1)
    message = (
        r"engine\.cache_gib = 1: the 2 engines of this process need 1\.501 GiB.* allowed: at least 1\.501, or"
    )
    with pytest.raises(UserError, match=message):
        budget.join(b, 2**30, 3 * 2**28)
    budget.join(a, 2**30, 1)
    budget.join(b, int(1.501 * 2**30), 3 * 2**28)


def test_an_engine_that_comes_after_others_have_taken_all_is_told_so():
    budget, (a, b) = Budget(), (Name(), Name())
    budget.join(a, 2**30, 2**28)
    assert budget.take(a, 2**30) == 2**30
    budget.join(b, 2**30, 2**28)
    with pytest.raises(UserError, match=r"engines that run have taken 1 GiB, .* they take 1\.25 GiB"):
        budget.take(b, 2**30)
    budget.leave(a)
    assert budget.take(b, 2**30) == 2**30


def test_an_engine_that_nobody_closed_gives_back_its_part():
    budget, name = Budget(), Name()
    budget.join(name, 100, 1)
    budget.take(name, 100)
    del name
    other = Name()
    budget.join(other, 100, 1)
    assert budget.take(other, 100) == 100
