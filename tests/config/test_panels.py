"""Panels as they are declared: what is refused and in which words, and what an override changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.planning import check, compose

ROOT = Path(__file__).parents[2]
FURTHER = "+tasks.panels.mine={split: in_domain, tasks: 5, measures: [policy, reward]}"


def composed(*overrides: str):
    return parse(compose.compose(overrides, ROOT))


def test_the_default_panels_are_named_as_ever():
    tasks = composed().tasks
    assert (tasks.policy_panels, tasks.reward_panels) == (("in_domain", "out_of_domain"), ("reward_panel",))
    assert tasks.drawn == {"train": 320, "in_domain": 400, "out_of_domain": 400, "reward_panel": 24}


def test_an_override_changes_adds_and_removes_a_panel():
    assert composed("tasks.panels.in_domain.tasks=10").tasks.panels["in_domain"].tasks == 10
    tasks = composed(FURTHER).tasks
    assert list(tasks.panels) == ["in_domain", "out_of_domain", "reward_panel", "mine"]
    assert (tasks.policy_panels[-1], tasks.reward_panels) == ("mine", ("reward_panel", "mine"))
    assert tasks.drawn["in_domain"] == 405
    for without in ("~tasks.panels.out_of_domain", "tasks.panels.out_of_domain=null"):
        assert list(composed(without).tasks.panels) == ["in_domain", "reward_panel"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("tasks.in_domain=10", "its size is tasks.panels.in_domain.tasks"),
        ("tasks.panels.in_domain=10", "its size is tasks.panels.in_domain.tasks = 10"),
        ("tasks.panels.in_domian.tasks=10", "tasks.panels.in_domian: unknown; did you mean 'in_domain'?"),
        ("tasks.panels.in_domain.task=1", "did you mean 'tasks.panels.in_domain.tasks'?"),
        (
            "tasks.panels.in_domain.measures=[]",
            "measures = []: name what is measured, once: policy or reward",
        ),
        ("tasks.panels.in_domain.measures=[policy,policy]", "measures = ['policy', 'policy']: name"),
        ("tasks.panels.in_domain.measures=[police]", "'police': Input should be 'policy' or 'reward'"),
        ("+tasks.panels.ut={tasks:3,measures:[policy]}", "panels.ut: a panel names files and metrics"),
        ("+tasks.panels.Train={tasks:3,measures:[policy]}", "panels.Train: a panel names files"),
        (f"+tasks.panels.{'x' * 51}={{tasks:3,measures:[policy]}}", "x: a panel names files"),
        (
            "+tasks.panels.In_Domain={tasks:3,measures:[policy]}",
            "differs from panels.in_domain in capitals alone",
        ),
        ("~tasks.panels.reward_panel", "none of them has 'reward' in its measures"),
        ("~tasks.panels.in_domain ~tasks.panels.out_of_domain", "reward_panel: none of them has 'policy'"),
    ],
)
def test_a_bad_panel_is_refused_with_what_is_allowed(override, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        composed(*override.split(" "))


def test_the_form_of_older_files_is_refused_with_the_new_one():
    data = yaml.safe_load((ROOT / "params.yaml").read_text())
    data["tasks"] = {"train": 320, "in_domain": 400, "out_of_domain": 400, "reward_panel": 24}
    with pytest.raises(
        ConfigError, match=r"in_domain = 400: .*tasks\.panels\.in_domain\.tasks = 400, beside measures"
    ):
        parse(data)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "tasks.panels.in_domain.split=indomain",
            "'indomain': env has no such split: unknown; did you mean 'in_domain'",
        ),
        (
            "+tasks.panels.mine={tasks:3,measures:[policy]}",
            "mine.split = null, which is 'mine': env has no such split",
        ),
    ],
)
def test_a_split_that_the_environment_does_not_know_is_refused_before_any_work(override, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        check.check(composed(override), ROOT, engine=False)


def test_the_papers_benchmarks_are_the_panels_of_its_coding_experiment():
    config = composed("scale=paper", "env=coding_data")
    assert {name: panel.tasks for name, panel in config.tasks.panels.items()} == {
        "LiveBench": 128, "LiveCodeBench-V2": 511, "CodeContests": 200,
    }  # fmt: skip
    assert config.tasks.policy_panels == config.tasks.reward_panels == tuple(config.tasks.panels)
    check.check(config, ROOT, engine=False)
