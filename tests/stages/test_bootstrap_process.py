"""Where the adapter is trained: beside the other two models, or after them where one process may be busy."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from stage_cases import ROOT, small

from envs.alfworld.family import AlfworldFamily
from rlanything.core.errors import ConfigError
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
    start(tmp_path, f"train.workers={workers}")
    assert order == expected


def start(root: Path, *overrides: str) -> None:
    """Start the warm start of a project without tasks at `root`."""
    if not (root / "experiments").is_symlink():
        (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(small(), root)
    warmstart.train(small(*overrides, *SHORT), root, root / "work")


@pytest.fixture
def untrained(monkeypatch):
    """A warm start that trains its tokenizer and no model."""
    monkeypatch.setattr(warmstart, "_kept", lambda *_: None)
    monkeypatch.setattr(warmstart, "train_adapter", lambda *_: None)
    monkeypatch.setattr(warmstart.build, "chat_model", lambda *_: nullcontext())


@pytest.mark.parametrize("method", ["rewrite", "describe"])
@pytest.mark.parametrize("error", [KeyError("room"), SystemExit(3)])
def test_a_task_that_the_environment_fails_to_rewrite_is_left_out_and_counted(
    method, error, untrained, tmp_path, monkeypatch, capsys
):
    works, failed = getattr(AlfworldFamily, method), []

    def fails_once(family, task, *more):
        if not failed:
            failed.append(task)
            raise error
        return works(family, task, *more)

    monkeypatch.setattr(AlfworldFamily, method, fails_once)
    start(tmp_path, "train.workers=1")
    said = capsys.readouterr().err
    assert "bootstrap: tokenizer: AlfworldFamily failed in 1 of " in said
    assert f"The first: task {failed[0].task_id[:12]} ({failed[0].instruction!r}), " in said
    assert f"the environment raised in `{method}`: {type(error).__name__}: {error}. They are left out" in said


def test_where_every_rewrite_fails_the_error_says_why(untrained, tmp_path, monkeypatch):
    monkeypatch.setattr(AlfworldFamily, "rewrite", lambda *_: 7)
    said = (
        r"AlfworldFamily can rewrite none of .*AlfworldFamily failed in (\d+) of \1 rewrites.*: the environment raised "
        r"in `rewrite`: TypeError: rewrite\(task, direction, seed\) is 7, of type int; str is wanted"
    )
    with pytest.raises(ConfigError, match=said):
        start(tmp_path, "train.workers=1")
