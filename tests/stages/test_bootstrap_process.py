"""Where the adapter is trained: beside the other two models, or after them where one process may be busy."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest
from stage_cases import ROOT, small

from rlanything.stages import tasks
from rlanything.stages.bootstrap import warmstart

SHORT = ("bootstrap.policy.episodes=8", "bootstrap.reward.episodes=2", "bootstrap.adapter.episodes=2")


@pytest.mark.parametrize(
    ("workers", "expected"),
    [(1, ["policy", "reward", "adapter"]), (2, ["started", "policy", "checked", "reward", "awaited"])],
)
def test_the_adapter_has_a_process_of_its_own_only_where_two_may_be_busy(
    workers, expected, tmp_path, monkeypatch
):
    order: list[str] = []

    @contextmanager
    def beside(function, *call):
        assert function is warmstart.train_adapter
        order.append("started")
        yield SimpleNamespace(check=lambda: order.append("checked"), result=lambda: order.append("awaited"))

    monkeypatch.setattr(warmstart, "beside", beside)
    monkeypatch.setattr(warmstart, "train_adapter", lambda *call: order.append("adapter"))
    monkeypatch.setattr(warmstart, "_kept", lambda place, *_: order.append(place.name))
    monkeypatch.setattr(warmstart.build, "chat_model", lambda *_: nullcontext())
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(small(), tmp_path)
    warmstart.train(small(f"train.workers={workers}", *SHORT), tmp_path, tmp_path / "work")
    assert order == expected
