"""The names of the stages are in one place, and what locks keep apart is said there."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import rlanything
from rlanything import stages
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.files import locks
from rlanything.planning import compose
from rlanything.stages.declared import STAGES
from rlanything.stages.train import train_arm

NAMES = (stages.TASKS, stages.BOOTSTRAP, stages.TRAIN, stages.LABEL, stages.EVALUATE, stages.REPORT)


def test_the_declared_stages_have_these_names():
    assert tuple(stage.name for stage in STAGES) == NAMES


def test_no_command_that_reads_or_writes_the_inputs_is_forgotten():
    """The report reads results only, so it may run beside all others."""
    for stage in STAGES:
        command = stages.of_arm(stage.name, "full") if stage.arms else stage.name
        assert any(fnmatch(command, pattern) for pattern in stages.ALL) == (stage.name != stages.REPORT)


def test_locks_know_no_stage():
    tree = ast.parse(Path(locks.__file__).read_text())
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    assert not texts & {*NAMES, *stages.ALL}


def test_no_other_module_lists_the_stages_or_writes_their_commands():
    """Messages that tell a person what to run begin with the program's name."""
    written = re.compile(
        r'(?<!rlanything )\b(train|evaluate) --arm \{|"(train|evaluate)", "--arm"|"tasks", "bootstrap"|StageWork\("'
        r"(bootstrap|label|evaluate)"
    )
    package = Path(rlanything.__file__).parent
    files = (path for path in package.rglob("*.py") if path != Path(stages.__file__))
    assert [str(path) for path in files if written.search(path.read_text())] == []


@pytest.mark.parametrize("command", [stages.LABEL, f"{stages.EXAM} answer --model mine"])
def test_no_training_begins_beside_labels_and_exams(tmp_path, command):
    """A judge, or what is examined, may be a checkpoint of a run, which a training replaces when it ends."""
    config = parse(compose.compose(["scale=smoke"], Path(rlanything.__file__).parents[1]))
    refusal = pytest.raises(ConfigError, match="`rlanything train --arm full` cannot run beside")
    with locks.stage(tmp_path, command), refusal:
        train_arm(config, tmp_path, "full")
    assert not (tmp_path / "runs" / "full").exists()
