"""Which tasks can be stored: JSON gives them back as they are, or the message names the value that it would not."""

from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.ids import canonical_json
from rlanything.core.returned.tasks import unstorable
from rlanything.core.types import Task

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=2)
KEYS = st.text(max_size=3) | st.integers(0, 3)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner)
)


def given_back(task: Task) -> bool:
    try:
        return Task.from_json(json.loads(canonical_json(task.to_json()))) == task
    except (TypeError, ValueError):
        return False


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=1))
def test_a_task_has_no_objection_exactly_where_json_gives_it_back(payload, metadata):
    task = Task("levels", "reach it", payload, metadata)
    assert (unstorable(task) == "") == given_back(task)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"rooms": [{"at": (1, 2)}]}, "payload['rooms'][0]['at'] is of type tuple; JSON has lists"),
        (
            {"rooms": {3: "red"}},
            "payload['rooms'] has the key 3, of type int; JSON has keys of type str only",
        ),
        ({"keys": {"red"}}, "payload['keys'] is of type set; JSON has no such type"),
        ({"day": date(2020, 1, 2)}, "payload['day'] is of type date; JSON has no such type"),
        ({"share": float("nan")}, "payload['share'] is nan, which JSON has no number for"),
        (
            {"text": "\ud83d\ude00"},
            "its payload or metadata holds a text with the two halves of a surrogate pair",
        ),
        ({"half": "\ud83d", "none": None, "parts": [1, 0.5, True, {"a": "b"}]}, ""),
    ],
)
def test_the_message_names_the_value_and_its_type(payload, said):
    assert unstorable(Task("levels", "reach it", payload)) == said
    assert unstorable(Task("levels", "reach it", {}, payload)) == said.replace(
        "payload[", "metadata["
    ).replace("payload has", "metadata has")


def test_a_task_without_an_instruction_is_refused():
    assert unstorable(Task("levels", None, {})) == "its instruction is of type NoneType; a str is wanted"  # type: ignore[arg-type]
