"""The benchmark of pages: a run is made large by repeating it, and a browser's times come from what it draws."""

from __future__ import annotations

import pytest
from view_cases import made, steps_run

from benchmarks.pages import speed


@pytest.mark.parametrize(("rollouts", "iterations"), [(1, 1), (6, 2), (14, 4), (15, 5)])
def test_a_run_is_repeated_until_it_is_large_enough(rollouts, iterations):
    pages = list(speed.repeated(steps_run(), rollouts))  # five rollouts and two
    assert [page.iteration for page in pages] == list(range(iterations))
    assert sum(len(group["rollouts"]) for page in pages for group in page.groups) >= rollouts


@pytest.mark.integration
def test_times_are_those_of_a_search_that_found_something(server, browser):
    folder, url = server
    made(folder / "speed", list(speed.repeated(steps_run(), 70)))
    assert 0 < speed.first_view(browser, f"{url}/speed/") < 60
    taken, said = speed.search(browser, f"{url}/speed/", "zebra")
    assert 0 < taken < 60
    assert said == "10 of 70 rollouts, in 10 tasks"
    opened, clicked, said = speed.bars(browser, f"{url}/speed/")
    assert 0 < opened < 60
    assert 0 < clicked < 60
    assert said == "10 of 70 rollouts, in 10 tasks"
