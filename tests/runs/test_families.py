"""The tasks that a family makes: what cannot be stored as it is goes no further."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlanything.core.errors import ConfigError
from rlanything.core.types import Task
from rlanything.runs import families


def family(*payloads: dict) -> SimpleNamespace:
    """A family whose tasks have these payloads."""
    return SimpleNamespace(make=lambda *_: [Task("rooms", "open it", payload) for payload in payloads])


def test_tasks_that_json_gives_back_are_taken_as_they_are():
    assert [task.payload for task in families.make(family({"at": [1]}), "train", 1, 0)] == [{"at": [1]}]


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"at": (1, 2)}, r"payload\['at'\]"),
        ({"doors": {1: "red"}}, "the key 1"),
        ({"s": {2}}, r"payload\['s'\]"),
    ],
)
def test_a_task_that_json_gives_back_as_another_one_is_named_with_its_split_and_value(payload, place):
    with pytest.raises(ConfigError, match=f"task 1 of split train .'open it'.*{place}"):
        families.make(family({"at": [1]}, payload), "train", 2, 0)
