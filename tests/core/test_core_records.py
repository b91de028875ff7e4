"""Trajectories and judgements come back from their records token for token."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from core_cases import judgements, relaxed, trajectories
from hypothesis import given

from rlanything.core.records.rollouts import (
    judgements_from_json,
    judgements_to_json,
    lesson_from_json,
    trajectory_from_json,
    trajectory_to_json,
)
from rlanything.core.types import Judgement, Status, Step, Trajectory, Vote


def through_json(value):
    return json.loads(json.dumps(value))


def episode(*prompts):
    steps = [Step(p, (7, 2), (-0.25, -0.25), (), "go", True, "you went") for p in prompts]
    return Trajectory("id", 3, 1, 99, "start", tuple(steps), -1, Status.TRUNCATED)


@given(trajectories())
@relaxed
def test_trajectories_round_trip(trajectory):
    assert trajectory_from_json(through_json(trajectory_to_json(trajectory))) == trajectory


@given(judgements())
@relaxed
def test_judgements_round_trip(judged):
    assert judgements_from_json(through_json(judgements_to_json(judged))) == judged


def test_a_prompt_that_extends_the_turn_before_is_stored_as_what_it_adds():
    record = trajectory_to_json(episode((1, 5), (1, 5, 7, 2, 8), (1, 5, 7, 2, 8, 7, 2, 9)))
    stored = [(s["prompt_kept"], s["prompt_added"]) for s in record["steps"]]
    assert stored == [(0, [1, 5]), (4, [8]), (7, [9])]


def test_a_prompt_that_breaks_off_is_stored_from_where_it_differs():
    record = trajectory_to_json(episode((1, 5), (1, 6, 7), ()))
    stored = [(s["prompt_kept"], s["prompt_added"]) for s in record["steps"]]
    assert stored == [(0, [1, 5]), (1, [6, 7]), (0, [])]


def test_a_question_is_stored_as_what_it_adds_to_the_one_before():
    vote = Vote(None, "", (4,), (-1.0,))
    judged = [Judgement((1, 2, 3, 9), (vote,)), Judgement((1, 2, 3, 4, 5, 9), (vote, vote))]
    stored = [(r["prompt_kept"], r["prompt_added"]) for r in judgements_to_json(judged)]
    assert stored == [(0, [1, 2, 3, 9]), (3, [4, 5, 9])]


@pytest.mark.parametrize("kept", [-1, 5])
def test_a_record_that_keeps_what_was_not_there_is_refused(kept):
    record = trajectory_to_json(episode((1, 5), (1, 5, 7, 2, 8)))
    record["steps"][1]["prompt_kept"] = kept
    with pytest.raises(ValueError, match=f"prompt_kept = {kept}: the turn before has 4 ids"):
        trajectory_from_json(record)


def test_an_unknown_status_is_refused():
    with pytest.raises(ValueError, match="exploded"):
        trajectory_from_json({**trajectory_to_json(episode()), "status": "exploded"})


def test_a_missing_field_is_named():
    record = trajectory_to_json(episode((1,)))
    del record["steps"][0]["response"]
    with pytest.raises(ValueError, match=r"steps\.0\.response: Field required"):
        trajectory_from_json(record)


@pytest.mark.parametrize(
    ("field", "value", "trouble"),
    [
        ("slot", True, "slot: Input should be a valid integer"),
        ("task_id", ["a"], "task_id: Input should be an instance of str"),
        ("outcome", 0, "outcome: 0: must be 1 or -1"),
        ("outcome", True, "outcome: Input should be a valid integer"),
        ("outcome", 1.0, "outcome: Input should be a valid integer"),
        ("steps", {}, "steps: Input should be a valid list"),
    ],
)
def test_a_field_of_another_type_is_named(field, value, trouble):
    with pytest.raises(ValueError, match=trouble):
        trajectory_from_json({**trajectory_to_json(episode((1,))), field: value})


LARGE = 1 << 63


@pytest.mark.parametrize("number", [LARGE, -LARGE - 1, 10**300])
@pytest.mark.parametrize("place", ["slot", "rollout", "seed", "version"])
def test_a_number_that_64_bits_cannot_hold_is_refused(place, number):
    record = trajectory_to_json(episode((1, 5)))
    with pytest.raises(
        ValueError, match=rf"^{place}: Input should be (less|greater) than or equal to -?92233720368547758"
    ):
        trajectory_from_json({**record, place: number})
    assert trajectory_from_json({**record, place: LARGE - 1}) != trajectory_from_json(record)


@pytest.mark.parametrize("number", [LARGE, -LARGE - 1, 10**300])
@pytest.mark.parametrize(
    "place", ["prompt_kept", "prompt_added.0", "response.1", "logprobs.0", "allowed.0.0", "text_kept"]
)
def test_a_number_of_a_step_that_64_bits_cannot_hold_is_refused(place, number):
    record = trajectory_to_json(episode((1, 5)))
    step = {**record["steps"][0], "allowed": [[7], [2]], "text_kept": 0, "text_added": "a"}
    *keys, last = place.split(".")
    holder = step
    for key in keys:
        holder = holder[int(key) if key.isdigit() else key]
    holder[int(last) if last.isdigit() else last] = number
    with pytest.raises(ValueError, match=rf"^steps\.0\.{place}: Input should be (less|greater) than"):
        trajectory_from_json({**record, "steps": [step]})


@pytest.mark.parametrize("number", [LARGE, 10**300])
def test_a_number_of_a_vote_or_lesson_that_64_bits_cannot_hold_is_refused(number):
    vote = {"verdict": 1, "reasoning": "", "response": [1, 2], "logprobs": [-0.5, -0.5]}
    for key in ("response", "logprobs"):
        judged = [{"prompt_kept": 0, "prompt_added": [], "votes": [{**vote, key: [1, number]}]}]
        with pytest.raises(ValueError, match=rf"^0\.votes\.0\.{key}\.1: Input should be less than"):
            judgements_from_json(judged)
    with pytest.raises(ValueError, match=r"^weight: Input should be less than"):
        lesson_from_json({"advantages": [0.5], "weight": number})


def test_a_step_has_a_log_prob_for_every_token():
    record = trajectory_to_json(episode((1,)))
    record["steps"][0]["logprobs"] = []
    with pytest.raises(ValueError, match=r"0 log-probs for \d+ tokens"):
        trajectory_from_json(record)


def test_where_decoding_was_constrained_a_step_has_the_allowed_ids_of_every_token():
    record = trajectory_to_json(episode((1,)))
    record["steps"][0]["allowed"] = [[7, 8]]
    with pytest.raises(ValueError, match="1 lists of allowed ids for 2 tokens"):
        trajectory_from_json(record)


def test_the_parts_of_a_prompts_text_belong_together():
    for key in ("text_added", "text_kept"):
        record = trajectory_to_json(episode((1,)))
        record["steps"][0][key] = {"text_added": "a", "text_kept": 0}[key]
        with pytest.raises(ValueError, match=r"steps\.0: text_added and text_kept belong together"):
            trajectory_from_json(record)


def test_a_vote_has_a_log_prob_for_every_token():
    vote = {"verdict": 1, "reasoning": "", "response": [1, 2], "logprobs": [-0.5]}
    with pytest.raises(ValueError, match="1 log-probs for 2 tokens"):
        judgements_from_json([{"prompt_kept": 0, "prompt_added": [], "votes": [vote]}])


def test_a_vote_of_an_endpoint_has_no_log_probs():
    vote = {"verdict": 1, "reasoning": "", "response": [1, 2], "logprobs": []}
    (judged,) = judgements_from_json([{"prompt_kept": 0, "prompt_added": [], "votes": [vote]}])
    assert judged.votes[0].logprobs == ()


def test_a_lone_surrogate_in_a_reply_is_read_back():
    found = replace(episode((1,)), first_observation="\ud800")
    assert trajectory_from_json(through_json(trajectory_to_json(found))) == found


def test_a_record_without_pictures_does_not_speak_of_them():
    record = trajectory_to_json(episode((1, 5)))
    assert "first_images" not in record
    assert "images" not in record["steps"][0]


@pytest.mark.parametrize("name", ["../secret", "A" * 64, "0" * 63, 7])
def test_a_picture_is_named_by_64_hex_digits_and_by_nothing_else(name):
    record = trajectory_to_json(episode((1, 5)))
    record["steps"][0]["images"] = [name]
    with pytest.raises(ValueError, match=r"steps\.0\.images\.0"):
        trajectory_from_json(record)
    with pytest.raises(ValueError, match=r"first_images\.0"):
        trajectory_from_json({**trajectory_to_json(episode()), "first_images": [name]})
