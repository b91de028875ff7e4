"""Whoever opens an engine closes it, also after an error. A model that an arm does not ask gets no engine."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from stage_cases import small

from rlanything.core.errors import MachineError
from rlanything.engines.native import NativeEngine
from rlanything.loop.iteration import Loop
from rlanything.runs import seedrun
from rlanything.runs.layout import Layout
from rlanything.stages import evaluate, train
from rlanything.stages.bootstrap import stage

pytestmark = pytest.mark.integration
CONFIG = small("train.iterations=1", "+arm@arms.oracle=policy", "arms.oracle.judge={source: oracle}")


class Engines:
    """Counts the engines that are opened, and knows those that are open."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = 0
        self.open: set[int] = set()
        make, close = NativeEngine.__init__, NativeEngine.close

        def counted(engine, *args, **options):
            make(engine, *args, **options)
            self.opened += 1
            self.open.add(id(engine))

        def forgotten(engine):
            close(engine)
            self.open.discard(id(engine))

        monkeypatch.setattr(NativeEngine, "__init__", counted)
        monkeypatch.setattr(NativeEngine, "close", forgotten)


@pytest.fixture
def engines(monkeypatch) -> Engines:
    return Engines(monkeypatch)


@pytest.fixture(scope="module")
def project(tiny_project, tmp_path_factory) -> Path:
    return shutil.copytree(tiny_project, tmp_path_factory.mktemp("engines") / "project", symlinks=True)


@pytest.mark.parametrize(("arm", "models"), [("full", 3), ("outcome", 2), ("oracle", 1)])
def test_a_training_opens_an_engine_for_each_model_that_is_asked(engines, project, arm, models):
    train.train_arm(CONFIG, project, arm)
    assert (engines.opened, engines.open) == (models, set())


@pytest.mark.long
def test_an_evaluation_closes_its_engines(engines, project):
    evaluate.evaluate_arm(CONFIG, project, "base")
    assert (engines.opened, engines.open) == (2, set())
    evaluate.evaluate_arm(CONFIG, project, "base_cooled")
    assert engines.opened > 2
    assert not engines.open


def test_after_an_error_no_engine_is_open(engines, project, monkeypatch):
    def fail(*_):
        raise RuntimeError("the machine is on fire")

    monkeypatch.setattr(Loop, "collect", fail)
    with pytest.raises(RuntimeError, match="on fire"):
        train.train_arm(small("train.iterations=1", "seed=5"), project, "policy")
    assert engines.opened > 0
    assert not engines.open


def test_measuring_the_base_models_closes_their_engines(engines, project):
    copied = project.parent / "copied"
    shutil.copytree(project, copied, symlinks=True)
    stage._finish(CONFIG, copied, Layout(copied), "")
    assert (engines.opened, engines.open) == (2, set())


def test_engines_are_closed_before_the_executor_ends_which_may_have_placed_their_servers(
    engines, project, monkeypatch
):
    """Also where the executor does not begin."""
    at_the_end = []

    @contextmanager
    def ends(config):
        yield
        at_the_end.append(set(engines.open))

    config = small("train.iterations=1", "seed=6")
    with monkeypatch.context() as patch:
        patch.setattr(seedrun, "opened", ends)
        train.train_arm(config, project, "outcome")
    assert at_the_end == [set()]
    monkeypatch.setattr(seedrun, "opened", mock.Mock(side_effect=MachineError("no worker starts")))
    with pytest.raises(MachineError, match="no worker starts"):
        train.train_arm(config, project, "policy")
    assert engines.opened > 2
    assert not engines.open
