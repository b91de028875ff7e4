"""Kinds of reward models: one place reads which one a configuration names, and another kind is one entry there."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from math import isnan
from pathlib import Path

import pytest

from rlanything.config import parse
from rlanything.planning import compose, plan, summary
from rlanything.planning.costs.estimate import model_sizes
from rlanything.rewards.kind import KINDS, RewardKind, kind_of
from rlanything.rewards.panel import solved
from rlanything.rewards.protocols import Replies
from rlanything.rewards.step_votes.kind import StepVotes

ROOT = Path(__file__).parents[2]
BELOW = {
    "rlanything/config/agreement.py",
    "rlanything/config/sources/source.py",
    "rlanything/report/results/metrics.py",
}
"""Modules of rooms below `rewards/`, which may not import it."""


def public(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}


@pytest.mark.long
def test_one_module_reads_which_kind_a_configuration_names():
    readers = {
        path.relative_to(ROOT).as_posix()
        for top in ("rlanything", "envs", "benchmarks")
        for path in (ROOT / top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("judge.writes")
    }
    assert readers == {"rlanything/rewards/kind.py"} | BELOW


@pytest.mark.parametrize("name", list(KINDS))
def test_a_kind_offers_the_protocol_and_nothing_else(name):
    assert public(type(KINDS[name])) == public(RewardKind) | {"replies"}


def test_the_kinds_are_imported_without_torch():
    code = "import rlanything.rewards.kind, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_another_kind_is_one_more_entry(monkeypatch):
    class Grades(StepVotes):
        replies = Replies(
            "grades an episode", "graded episodes", "grade", "invalid_grades", "the judge template"
        )

        def count_replies(self, config, episodes):
            return episodes

    config = parse(compose.compose([], ROOT))
    monkeypatch.setitem(KINDS, config.judge.writes, Grades())
    assert kind_of(config).replies.unit == "grades an episode"
    planned = plan.plan_arm(config, ROOT, "policy")
    assert planned.replies == planned.rollouts
    assert "grades an episode" in summary.render(config, model_sizes(config, ROOT), [planned])


def test_a_panel_that_nothing_was_measured_on_was_not_failed():
    assert isnan(solved([]))
