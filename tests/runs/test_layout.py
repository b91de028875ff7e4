"""Tasks are read with their ids verified."""

from __future__ import annotations

import pytest

from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.files.records import write_lines
from rlanything.runs.layout import read_tasks


def test_tasks_are_read_back_and_one_that_was_changed_by_hand_is_named(tmp_path):
    path = tmp_path / "train.jsonl"
    tasks = [Task("game", f"do thing {k}", {"k": k}) for k in range(2)]
    write_lines(path, [task.to_json() for task in tasks])
    assert read_tasks(path) == tasks
    path.write_text(path.read_text().replace("do thing 1", "do thing 7"))
    with pytest.raises(ConfigError, match=r"train\.jsonl:2: not a task \(task_id .* does not match"):
        read_tasks(path)


def test_a_record_that_is_no_task_is_named(tmp_path):
    path = tmp_path / "train.jsonl"
    write_lines(path, [{"env": "game"}])
    with pytest.raises(ConfigError, match=r"train\.jsonl:1: not a task"):
        read_tasks(path)
