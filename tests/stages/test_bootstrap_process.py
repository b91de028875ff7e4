"""Which processes train the base models: two that share each gradient, or one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from stage_cases import ROOT, small, small_coding
from transformers import Qwen2ForCausalLM

from envs.alfworld.family import AlfworldFamily
from rlanything.config import Architecture, Config, SupervisedConfig
from rlanything.core.errors import ConfigError, EnvironmentFailure, MachineError
from rlanything.core.types import Observation
from rlanything.learn.packing import NO_BRANCH, Row
from rlanything.learn.supervised.fit import fit
from rlanything.learn.supervised.fresh import fresh_model
from rlanything.learn.supervised.gradient import here, in_halves
from rlanything.rewards.step_votes.lessons import VoteLessons
from rlanything.stages import tasks
from rlanything.stages.bootstrap import sharing, warmstart
from rlanything.stages.bootstrap.sharing import shared

SHORT = ("bootstrap.policy.episodes=8", "bootstrap.reward.episodes=2", "bootstrap.adapter.episodes=2")


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        (1, ["policy", "lessons", "reward", "adapter"]),
        (2, ["policy", "started", "lessons", "awaited", "reward", "awaited"]),
    ],
)
def test_the_adapter_is_trained_beside_the_lessons_only_where_two_may_be_busy(
    workers, expected, tmp_path, monkeypatch
):
    order: list[str] = []

    @contextmanager
    def beside(function, *call):
        assert function is warmstart.train_adapter
        order.append("started")
        yield SimpleNamespace(result=lambda: order.append("awaited"))

    monkeypatch.setattr(warmstart, "beside", beside)
    monkeypatch.setattr(warmstart, "train_adapter", lambda *call: order.append("adapter"))
    monkeypatch.setattr(warmstart, "_kept", lambda place, tokenizer, make: make())
    gradients = []
    monkeypatch.setattr(
        warmstart, "_policy", lambda *call: order.append("policy") or gradients.append(call[-1])
    )
    monkeypatch.setattr(VoteLessons, "rows", lambda *_: order.append("lessons"))
    monkeypatch.setattr(
        warmstart, "_reward", lambda *call: order.append("reward") or gradients.append(call[-1])
    )
    monkeypatch.setattr(warmstart.build, "chat_model", lambda *_: nullcontext())
    start(tmp_path, f"train.workers={workers}")
    assert order == expected
    assert [gradient.keywords["begin"] is here for gradient in gradients] == [workers == 1] * 2


SIZES = Architecture(hidden=96, intermediate=288, layers=3, heads=3, kv_heads=1, vocab=430, positions=512)
"""Of the default's models."""
END, PAD = 1, 7


def fresh() -> Qwen2ForCausalLM:
    return fresh_model(SIZES, SIZES.vocab, END, PAD, seed=0)


def row(length: int, token: int = 3) -> Row:
    """A row in which every token but the first is learned."""
    made = Row()
    made.read([token] * length, 0, None, NO_BRANCH, NO_BRANCH)
    for source in range(length - 1):
        made.learn(source, token, (), 0.0, 0.0, 1.0)
    return made


def tree(length: int) -> Row:
    """A trunk with two questions."""
    made = Row()
    made.read(list(range(length)), 0, None, NO_BRANCH, NO_BRANCH)
    for number in (0, 1):
        made.read([PAD, 0, 20 + number], length, length, number, NO_BRANCH)
        made.learn(len(made.ids) - 1, 30 + number, (), 0.0, 0.0, 1.0)
    return made


def taught(workers: int) -> dict[str, torch.Tensor]:
    """The weights of a model after steps on rows, on trees, and on single rows."""
    model = fresh()
    rows = [[row(length, token) for token in (length % 9, PAD)] for length in (20, 90, 170)]
    trees = [[tree(length)] for length in (10, 120, 300)]
    with shared(workers) as begin:
        for examples in (rows, trees, [[row(9, 4)]]):
            settings = SupervisedConfig(episodes=len(examples), steps=3, batch=2, lr=1e-2)
            fit(model, examples, settings, 0, lambda *_: None, partial(in_halves, begin=begin))
    return model.state_dict()


def test_two_processes_teach_the_same_bytes_as_one():
    alone, both = taught(1), taught(2)
    assert all(torch.equal(alone[name], both[name]) for name in alone)
    untaught = fresh().state_dict()
    assert not any(torch.equal(alone[name], untaught[name]) for name in alone)


@pytest.mark.long
@pytest.mark.parametrize("composed", [small, small_coding])
def test_base_models_do_not_depend_on_the_number_of_processes(composed, tmp_path):
    found = []
    for workers in (1, 2):
        root = tmp_path / str(workers)
        root.mkdir()
        start(root, f"train.workers={workers}", composed=composed)
        found.append({p.relative_to(root): p.read_bytes() for p in (root / "work").rglob("*") if p.is_file()})
    assert found[0] == found[1]
    assert {path.parts[1] for path in found[0]} == {"tokenizer", "policy", "reward", "adapter"}


def test_what_the_other_process_raises_is_raised():
    model = fresh()
    with shared(2) as begin, pytest.raises(IndexError, match="out of range") as raised:
        in_halves(model, [row(9), row(5, SIZES.vocab)], begin)
    assert "in a worker process" in raised.value.__notes__[0]


def test_a_process_that_is_killed_ends_the_stage_with_what_to_do(monkeypatch):
    model, batch, kept = fresh(), [row(9), row(5)], []
    works = sharing.conversing

    @contextmanager
    def heard(*call):
        with works(*call) as (child, pipe):
            kept.append(child)
            yield child, pipe

    monkeypatch.setattr(sharing, "conversing", heard)
    with shared(2) as begin:
        in_halves(model, batch, begin)
        kept[0].kill()
        with pytest.raises(MachineError, match="a worker process was killed"):
            in_halves(model, batch, begin)


def start(root: Path, *overrides: str, composed: Callable[..., Config] = small) -> None:
    """Start the warm start of a project without tasks at `root`."""
    if not (root / "experiments").is_symlink():
        (root / "experiments").symlink_to(ROOT / "experiments")
    tasks.make_tasks(composed(), root)
    warmstart.train(composed(*overrides, *SHORT), root, root / "work")


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


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (KeyError("room"), "KeyError: 'room'"),
        (SystemExit(3), "SystemExit: 3"),
        (None, r"TypeError: 'NoneType' object is not iterable"),
        ([], r"ValueError: demonstrate\(task, seed, noise\) has no step"),
        ([(Observation("a room"), 7)], r"TypeError: .*: an action is 7, of type int; str is wanted"),
        ([(Observation("a room \ud83d"), "look")], r"UnicodeEncodeError: .*surrogates not allowed"),
    ],
)
def test_a_demonstration_that_fails_ends_the_stage_with_its_task(
    fails, said, untrained, tmp_path, monkeypatch
):
    works, asked = AlfworldFamily.demonstrate, []

    def third_fails(family, task, *more):
        asked.append(task)
        if len(asked) < 3:
            return works(family, task, *more)
        if isinstance(fails, BaseException):
            raise fails
        return fails

    monkeypatch.setattr(AlfworldFamily, "demonstrate", third_fails)
    with pytest.raises(
        EnvironmentFailure, match=rf"env: AlfworldFamily\.demonstrate failed for .*{said}"
    ) as raised:
        start(tmp_path, "train.workers=1")
    assert f"task {asked[-1].task_id[:12]} ({asked[-1].instruction!r})" in str(raised.value)
    assert len(asked) == 3


@pytest.mark.parametrize("kind", [MachineError, type("EmulatorCrash", (EnvironmentFailure,), {})])
def test_an_environment_that_says_where_the_cause_lies_is_heard(kind, untrained, tmp_path, monkeypatch):
    def missing(*_):
        raise kind("no emulator is installed")

    monkeypatch.setattr(AlfworldFamily, "demonstrate", missing)
    with pytest.raises(kind, match=r"^no emulator is installed$"):
        start(tmp_path, "train.workers=1")


def test_where_every_rewrite_fails_the_error_says_why(untrained, tmp_path, monkeypatch):
    monkeypatch.setattr(AlfworldFamily, "rewrite", lambda *_: 7)
    said = (
        r"AlfworldFamily can rewrite none of .*AlfworldFamily failed in (\d+) of \1 rewrites.*: the environment raised "
        r"in `rewrite`: TypeError: rewrite\(task, direction, seed\) is 7, of type int; str is wanted"
    )
    with pytest.raises(ConfigError, match=said):
        start(tmp_path, "train.workers=1")
