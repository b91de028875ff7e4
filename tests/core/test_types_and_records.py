"""Tasks, trajectories and judgements survive JSON, and what was tampered with is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlanything.core.records import (
    judgements_from_json,
    judgements_to_json,
    trajectory_from_json,
    trajectory_to_json,
)
from rlanything.core.types import Judgement, Status, Step, Task, Trajectory, Vote

TASK = Task("boxes", "open the red box", {"boxes": ["red", "blue"], "limit": 3}, {"split": "train"})
IDS = st.lists(st.integers(0, 9), max_size=6).map(tuple)
LOGPROB = st.floats(-30, 0)


@st.composite
def trajectories(draw) -> Trajectory:
    steps, prompt = [], draw(IDS)
    for _ in range(draw(st.integers(0, 4))):
        response = draw(IDS)
        steps.append(
            Step(
                prompt,
                response,
                tuple(draw(LOGPROB) for _ in response),
                draw(st.just(()) | st.just(tuple((token, 99) for token in response))),
                draw(st.text(max_size=8)),
                draw(st.booleans()),
                draw(st.text(max_size=8)),
            )
        )
        prompt = draw(IDS) if draw(st.booleans()) else prompt + response + draw(IDS)
    status = draw(st.sampled_from(list(Status)))
    return Trajectory(
        "t", 3, 1, 2**62, draw(st.text()), tuple(steps), draw(st.sampled_from([1, -1])), status, "e"
    )


@st.composite
def judgements(draw) -> tuple[Judgement, ...]:
    result, trunk = [], draw(IDS)
    for _ in range(draw(st.integers(0, 4))):
        votes = [
            Vote(
                draw(st.sampled_from([1, -1, None])),
                draw(st.text(max_size=8)),
                ids,
                tuple(draw(LOGPROB) for _ in ids),
            )
            for ids in draw(st.lists(IDS, max_size=3))
        ]
        result.append(Judgement(trunk + draw(IDS), tuple(votes)))
        trunk += draw(IDS)
    return tuple(result)


def through_json(value):
    return json.loads(json.dumps(value))


@given(trajectories())
def test_any_trajectory_survives_json_token_for_token(trajectory):
    assert trajectory_from_json(through_json(trajectory_to_json(trajectory))) == trajectory


@given(judgements())
def test_any_judgements_survive_json_token_for_token(judged):
    assert judgements_from_json(through_json(judgements_to_json(judged))) == judged


def step(prompt: tuple[int, ...], response: tuple[int, ...]) -> Step:
    return Step(prompt, response, (-0.5,) * len(response), (), "a", True, "o")


def growing(turns: int) -> Trajectory:
    steps, prompt = [], tuple(range(50))
    for k in range(turns):
        steps.append(step(prompt, (100 + k,)))
        prompt += (100 + k, 7, 7)
    return Trajectory("t", 0, 0, 1, "first", tuple(steps), 1, Status.OK)


def test_a_prompt_that_extends_the_turn_before_is_stored_as_what_it_adds():
    first, second, third = trajectory_to_json(growing(3))["steps"]
    assert (first["prompt_kept"], len(first["prompt_added"])) == (0, 50)
    assert (second["prompt_kept"], second["prompt_added"]) == (51, [7, 7])
    assert (third["prompt_kept"], third["prompt_added"]) == (54, [7, 7])


def test_questions_are_stored_as_what_they_add_to_the_one_before():
    trunk = tuple(range(40))
    records = judgements_to_json([Judgement((*trunk, 1), ()), Judgement((*trunk, 2, 3), ())])
    assert [(r["prompt_kept"], r["prompt_added"]) for r in records[1:]] == [(40, [2, 3])]


@pytest.mark.parametrize("kept", [-1, 52])
def test_a_record_that_keeps_what_was_not_there_is_refused(kept):
    record = trajectory_to_json(growing(2))
    record["steps"][1]["prompt_kept"] = kept
    with pytest.raises(ValueError, match="prompt_kept"):
        trajectory_from_json(record)


def test_a_record_without_a_field_or_with_an_unknown_status_is_refused():
    record = trajectory_to_json(growing(1))
    with pytest.raises(ValueError, match="exploded"):
        trajectory_from_json({**record, "status": "exploded"})
    with pytest.raises(KeyError, match="outcome"):
        trajectory_from_json({k: v for k, v in record.items() if k != "outcome"})


@pytest.mark.parametrize(
    ("status", "counts"),
    [(Status.OK, True), (Status.TRUNCATED, True), (Status.ENV_ERROR, False), (Status.TIMEOUT, False)],
)
def test_only_ended_and_truncated_trajectories_count(status, counts):
    assert replace(growing(1), status=status).counts is counts


def test_a_task_survives_json():
    back = Task.from_json(through_json(TASK.to_json()))
    assert back == TASK
    assert back.task_id == TASK.task_id


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("instruction", "open the blue box"),
        ("env", "rooms"),
        ("payload", {"boxes": ["red"]}),
        ("task_id", "0" * 64),
    ],
)
def test_a_tampered_task_is_refused(field, value):
    with pytest.raises(ValueError, match="does not match its content"):
        Task.from_json({**TASK.to_json(), field: value})


def test_a_task_without_a_stored_id_gets_its_own():
    data = {k: v for k, v in TASK.to_json().items() if k != "task_id"}
    assert Task.from_json(data).task_id == TASK.task_id


def test_metadata_and_key_order_do_not_enter_the_identity():
    other = Task("boxes", "open the red box", {"limit": 3, "boxes": ["red", "blue"]}, {"split": "test"})
    assert other.task_id == TASK.task_id


@pytest.mark.parametrize(
    "changed",
    [{"env": "rooms"}, {"instruction": "open it"}, {"payload": {"boxes": ["blue", "red"], "limit": 3}}],
)
def test_everything_that_makes_the_episode_enters_the_identity(changed):
    assert replace(TASK, **changed).task_id != TASK.task_id


def test_a_payload_with_nan_has_no_identity():
    with pytest.raises(ValueError, match="not JSON compliant"):
        _ = Task("boxes", "x", {"p": float("nan")}).task_id
