"""The names of the stages are in one place, and what locks keep apart is said there."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import rlanything
from rlanything import stages
from rlanything.files import locks
from rlanything.stages.declared import STAGES

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


def kept_apart(module: str) -> set[str]:
    """What a stage names as what must not run beside it, as its source writes it."""
    tree = ast.parse((Path(rlanything.__file__).parent / module).read_text())
    return {name.id for name in ast.walk(tree) if isinstance(name, ast.Name)}


def test_labels_exams_and_trainings_keep_each_other_apart():
    """A judge may be a checkpoint of a run, which a training replaces when it ends. Each side must say so."""
    assert {"LABEL", "EXAM"} <= kept_apart("stages/train.py")
    assert "TRAIN" in kept_apart("stages/label.py") & kept_apart("exams/answering.py")
