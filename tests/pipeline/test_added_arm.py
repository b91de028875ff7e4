"""An arm that is added, and that another arm's run is made for, is a stage like the others."""

import shutil
from collections.abc import Iterator

import pytest
import yaml
from pipeline_cases import Project, with_stand_ins

from rlanything.cli import main

pytestmark = [pytest.mark.long, pytest.mark.integration]

ADDED = ["+arm@arms.step_only=step_only", "+arm@arms.dynamic_sampling=dynamic_sampling"]


def stages(*arms: str) -> set[str]:
    return {f"{stage}@{arm}" for stage in ("train", "evaluate") for arm in arms} | {"report"}


@pytest.fixture(scope="module")
def added(finished, tmp_path_factory) -> Project:
    """The finished project after the two commands that add arms, and a `dvc repro`; the work is a stand-in's."""
    root = shutil.copytree(finished, tmp_path_factory.mktemp("added") / "project", symlinks=True)
    assert main(["--root", str(root), "config", "write", *ADDED]) == 0
    assert main(["--root", str(root), "config", "pipeline"]) == 0
    data = yaml.safe_load((root / "dvc.yaml").read_text())
    (root / "dvc.yaml").write_text(yaml.safe_dump(with_stand_ins(data), sort_keys=False))
    project = Project(root)
    assert project.repro() == stages("step_only", "dynamic_sampling")
    return project


@pytest.fixture
def extended(added, tmp_path) -> Project:
    """A copy of one's own, everything up to date."""
    return Project(shutil.copytree(added.root, tmp_path / "project", symlinks=True))


@pytest.fixture
def asked_with_arms(added) -> Iterator[Project]:
    """That project for tests that only ask what would run: what they change is undone."""
    project = Project(added.root)
    yield project
    project.undo()


def test_what_retrains_full_retrains_the_arm_that_its_reward_model_judges(extended):
    extended.change("adaptation.alpha_high", 0.95)
    assert extended.repro() == stages("full", "step_only")
    order = (extended.root / "ran.log").read_text().split()
    assert order.index("train@full") < order.index("train@step_only")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("signals.advantage_scale", "task", ("policy", "policy_reward", "full", "step_only")),
        ("signals.reward_lambda", 2.0, ("policy_reward", "full", "step_only")),
        ("arms.dynamic_sampling.max_batches", 3, ("dynamic_sampling",)),
        ("arms.full.max_batches", 3, ("full", "step_only")),
    ],
)
def test_after_a_parameter_changed(asked_with_arms, name, value, expected):
    asked_with_arms.change(name, value)
    assert asked_with_arms.would_run() == stages(*expected)


def test_an_arm_without_outcomes_does_not_depend_on_the_filters(asked_with_arms):
    asked_with_arms.change("signals.policy_min", 0.01)
    assert "train@step_only" not in asked_with_arms.would_run(same="train@full")
    assert "train@dynamic_sampling" in asked_with_arms.would_run(same="train@full")
