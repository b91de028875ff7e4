"""Identities and seeds: the same on every machine, different for different things."""

from __future__ import annotations

import json

import pytest
from core_cases import relaxed
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.ids import canonical_json, content_id
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Direction, Status, Task, Trajectory

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
parts = st.lists(st.integers() | st.text(max_size=5), max_size=5)


@pytest.mark.parametrize(
    ("arguments", "seed"),
    [
        ((0, "act"), 6880458039095339164),
        ((7, "act", 3, "task", 5, -1), 6805074969084672445),
        ((7, "judge", 3, "task", 5, 0, 2), 2058785404321345662),
    ],
)
def test_seeds_never_change(arguments, seed):
    assert derive_seed(*arguments) == seed


@given(parts, parts)
@relaxed
def test_different_parts_give_different_seeds(one, other):
    assert (derive_seed(1, "x", *one) == derive_seed(1, "x", *other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("1", 1), (1, "1")),
        (("ab", "c"), ("a", "bc")),
        (("a",), ("a", "")),
        ((1, 2), (12,)),
        ((-1,), ("-1",)),
    ],
)
def test_parts_are_typed_and_their_lengths_count(one, other):
    assert derive_seed(0, "x", *one) != derive_seed(0, "x", *other)


@given(st.integers(), st.text(max_size=8), parts)
@relaxed
def test_seeds_fit_a_signed_64_bit_integer(run_seed, phase, more):
    assert 0 <= derive_seed(run_seed, phase, *more) < 2**63


def test_run_seed_and_phase_matter():
    assert len({derive_seed(0, "a", 1), derive_seed(1, "a", 1), derive_seed(0, "b", 1)}) == 3


def test_neighbouring_seeds_share_no_pattern():
    """Of 2000 consecutive rollouts about half are odd, in the lowest and in the highest bit."""
    seeds = [derive_seed(0, "act", 0, "task", k) for k in range(2000)]
    assert 900 < sum(s & 1 for s in seeds) < 1100
    assert 900 < sum(s >> 62 for s in seeds) < 1100


def test_canonical_json_sorts_keys_at_every_depth_and_keeps_unicode():
    value = {"b": [1, {"z": None, "a": True}], "a": "größer → 猫"}
    assert canonical_json(value) == '{"a":"größer → 猫","b":[1,{"a":true,"z":null}]}'


@given(values)
@relaxed
def test_canonical_json_reads_back_and_is_a_fixed_point(value):
    text = canonical_json(value)
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [-float("inf")], {"a": {"b": float("nan")}}])
def test_numbers_that_json_does_not_have_are_refused(value):
    with pytest.raises(ValueError, match="JSON compliant"):
        content_id(value)


def test_what_is_no_json_at_all_is_refused():
    with pytest.raises(TypeError, match="set"):
        canonical_json({"a": {1, 2}})


def test_a_lone_surrogate_is_written_as_its_escape_and_read_back():
    assert canonical_json("a\ud800") == '"a\\ud800"'
    assert json.loads(canonical_json("a\ud800").encode()) == "a\ud800"
    assert content_id("\ud800") != content_id("\\ud800")


def test_the_halves_of_a_pair_are_its_character_so_what_is_read_back_has_the_same_id():
    halves = {"\udc00 \ud83d": ["a\ud83d" + "\ude00b", "\ude00\ud83d"]}
    written = canonical_json(halves)
    assert written == '{"\\udc00 \\ud83d":["a😀b","\\ude00\\ud83d"]}'
    assert content_id(json.loads(written)) == content_id(halves)


def test_content_ids_never_change():
    assert content_id({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert (
        content_id({"b": 1, "a": [1.5, "é"]})
        == content_id({"a": [1.5, "é"], "b": 1})
        == "b3aa7c2c75e6eda68896ca65edd78b023f766c052f625885b86d88bfa1f1a585"
    )


def test_a_task_is_what_the_agent_meets():
    task = Task("toy", "do it", {"a": 1, "b": [2]}, {"split": "train"})
    assert (
        task.task_id
        == Task("toy", "do it", {"b": [2], "a": 1}, {"split": "other"}).task_id
        == "657fb15e756c537b7bc5624cd371083a88d445443f2847b21c701c1dee57823d"
    )
    changed = [
        Task("toy2", "do it", task.payload),
        Task("toy", "do it!", task.payload),
        Task("toy", "do it", {}),
    ]
    assert len({task.task_id, *(t.task_id for t in changed)}) == 4


def test_a_task_reads_back():
    task = Task("toy", "tu das → 猫", {"a": 1}, {"split": "train"})
    again = Task.from_json(json.loads(json.dumps(task.to_json())))
    assert again == task
    assert again.task_id == task.task_id


def test_a_task_that_was_edited_on_disk_is_refused():
    data = Task("toy", "do it", {"a": 1}).to_json()
    with pytest.raises(ValueError, match="does not match its content"):
        Task.from_json({**data, "instruction": "do something else"})
    with pytest.raises(KeyError):
        Task.from_json({"env": "toy"})


def test_a_task_without_a_stored_id_is_taken_at_its_word():
    assert Task.from_json({"env": "toy", "instruction": "do it", "payload": {}}).metadata == {}


def test_only_finished_and_truncated_trajectories_count():
    counted = {s for s in Status if Trajectory("t", 0, 0, 0, "", (), -1, s).counts}
    assert counted == {Status.OK, Status.TRUNCATED}


def test_enums_are_stored_by_their_words():
    assert [d.value for d in Direction] == ["harder", "easier"]
    assert json.dumps([Status.ENV_ERROR, Direction.HARDER]) == '["env_error", "harder"]'
