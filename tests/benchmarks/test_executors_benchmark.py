"""The benchmark of workers measures both kinds of work with one and two workers, and compares within a form."""

import pytest

from benchmarks import executors


@pytest.mark.integration
def test_the_same_work_is_given_to_this_process_and_to_one_and_two_workers(monkeypatch):
    monkeypatch.setattr(executors, "find_spec", lambda name: None)
    monkeypatch.setattr(executors, "EPISODES", 8)
    found = executors.measure(tasks=1, rounds=1, backend="subprocess")
    assert set(found) == {
        f"{what} {setting}"
        for what in ("programs", "waiting")
        for setting in ("inline 1", "processes 1", "processes 2")
    }
    assert {row["times"] for name, row in found.items() if name.endswith(" 1")} == {1.0}
    least = 8 * executors.TURNS * executors.WAIT_S
    assert found["waiting inline 1"]["seconds"] >= least
    assert found["waiting processes 2"]["seconds"] >= least / 2
