"""The benchmark of workers measures both kinds of work with one and two workers, and compares within a form."""

import pytest

from benchmarks.executors import measuring


@pytest.mark.long
@pytest.mark.integration
def test_the_same_work_is_given_to_this_process_and_to_one_and_two_workers(monkeypatch):
    monkeypatch.setattr(measuring, "find_spec", lambda name: None)
    monkeypatch.setattr(measuring, "EPISODES", 8)
    found = measuring.measure(tasks=1, rounds=1, backend="subprocess")
    assert set(found) == {
        f"{what} {setting}"
        for what in ("programs", "waiting")
        for setting in ("inline 1", "processes 1", "processes 2")
    }
    assert {row["times"] for name, row in found.items() if name.endswith(" 1")} == {1.0}
    least = 8 * measuring.TURNS * measuring.WAIT_S
    assert found["waiting inline 1"]["seconds"] >= least
    assert found["waiting processes 2"]["seconds"] >= least / 2
