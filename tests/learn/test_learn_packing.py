"""Nothing of what was sampled is lost, moved or re-tokenised on its way into training rows."""

from __future__ import annotations

import copy
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learn_cases import (
    END,
    dialogue,
    judged,
    largest,
    lesson,
    qwen2,
    row_logprobs,
    separate_logprobs,
    step,
    verdicts,
    vote,
    words,
)

from rlanything.core.types import Judgement
from rlanything.learn.packing import micro_batches, minibatches, policy_rows, reward_rows

TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def model():
    return qwen2()


def test_turns_that_extend_each_other_are_one_row_of_exactly_the_tokens_that_were_read_and_sampled():
    steps = dialogue(0)
    (row,) = policy_rows(lesson(steps), "token")
    assert row.ids == [*steps[-1].prompt_ids, *steps[-1].response_ids]
    assert row.positions == list(range(len(row.ids)))
    assert not row.branched


def test_logprobs_of_a_row_equal_those_of_its_steps_read_one_by_one(model):
    steps = dialogue(1)
    together = row_logprobs(model, policy_rows(lesson(steps), "token"))
    alone = torch.cat([separate_logprobs(model, s.prompt_ids, s.response_ids) for s in steps])
    assert largest(together - alone) < TOLERANCE


def test_every_sampled_token_is_a_target_and_the_end_of_turn_is_one_of_them():
    steps = dialogue(2)
    (row,) = policy_rows(lesson(steps), "token")
    assert row.target == [token for s in steps for token in s.response_ids]
    assert row.target.count(END) == len(steps)
    assert [row.ids[k + 1] for k in row.source] == row.target


def test_every_token_of_a_step_carries_that_steps_advantage_and_recorded_logprob():
    first, second = (
        step((5, 6), (7, END), logprobs=(-0.5, -0.25)),
        step((5, 6, 7, END, 8), (9, END), logprobs=(-2.0, -3.0)),
    )
    (row,) = policy_rows(lesson([first, second], [0.3, -0.7]), "token")
    assert row.advantage == [0.3, 0.3, -0.7, -0.7]
    assert row.old == [-0.5, -0.25, -2.0, -3.0]


def test_a_prompt_that_does_not_extend_the_last_turn_starts_a_new_row(model):
    steps = dialogue(3, turns=4)
    cut = step(steps[2].prompt_ids[2:], steps[2].response_ids)
    broken = [steps[0], steps[1], cut]
    rows = policy_rows(lesson(broken, [1.0, 2.0, 3.0]), "token")
    assert [len(row.ids) for row in rows] == [
        len(s.prompt_ids) + len(s.response_ids) for s in (steps[1], cut)
    ]
    assert set(rows[1].advantage) == {3.0}
    together = torch.cat([row_logprobs(model, [row]) for row in rows])
    alone = torch.cat([separate_logprobs(model, s.prompt_ids, s.response_ids) for s in broken])
    assert largest(together - alone) < TOLERANCE


def test_a_dropped_step_does_not_shift_the_advantages_of_the_others():
    steps = dialogue(4, turns=3)
    rows = policy_rows(lesson([steps[0], steps[2]], [0.1, 0.3]), "token")
    pairs = [(t, a) for row in rows for t, a in zip(row.target, row.advantage, strict=True)]
    expected = [(t, 0.1) for t in steps[0].response_ids] + [(t, 0.3) for t in steps[2].response_ids]
    assert pairs == expected


def test_an_end_of_turn_that_was_added_to_a_response_cut_short_is_read_but_not_learned():
    cut = step((5, 6), (7, 8))
    following = step((5, 6, 7, 8, END, 9), (4, END))
    (row,) = policy_rows(lesson([cut, following]), "token")
    assert row.target == [7, 8, 4, END]
    assert [row.ids[k + 1] for k in row.source] == row.target
    assert row.source == [1, 2, 5, 6]


def test_tokens_that_constrained_decoding_forced_are_no_targets_but_are_read():
    forced = step((5,), (7, 8, END), allowed=((7, 9), (8,), (END, 4)))
    (row,) = policy_rows(lesson([forced]), "step")
    assert row.target == [7, END]
    assert row.allowed == [(7, 9), (END, 4)]
    assert row.source == [0, 2]
    assert row.ids == [5, 7, 8, END]
    assert sum(row.weight) == pytest.approx(1.0)


def test_a_trajectory_in_which_every_token_was_forced_gives_no_row():
    assert policy_rows(lesson([step((5,), (7, END), allowed=((7,), (END,)))]), "step") == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("token", [1.0, 1.0, 1.0, 1.0, 1.0]),
        ("step", [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]),
        ("trajectory", [0.2, 0.2, 0.2, 0.2, 0.2]),
    ],
)
def test_weights_let_tokens_steps_or_trajectories_count_the_same(kind, expected):
    first = step((5,), (7, END))
    second = step((5, 7, END, 6), (8, 9, END))
    (row,) = policy_rows(lesson([first, second]), kind)
    assert row.weight == pytest.approx(expected)


@pytest.mark.parametrize(
    ("kind", "expected"), [("step", [0.5, 0.5, 1.0]), ("trajectory", [1 / 3] * 3), ("token", [1.0] * 3)]
)
def test_tokens_that_were_forced_take_no_part_of_the_weight(kind, expected):
    first = step((5,), (7, 8, END), allowed=((7, 9), (8,), (END, 4)))
    second = step((5, 7, 8, END, 6), (8, END), allowed=((8, 9), (END,)))
    (row,) = policy_rows(lesson([first, second]), kind)
    assert row.weight == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_logprobs_of_every_vote_in_a_tree_equal_those_of_the_vote_read_alone(model, seed):
    judgements = judged(seed, steps=4)
    (row,) = reward_rows(verdicts(judgements), "step")
    assert row.branched
    alone = [separate_logprobs(model, j.prompt_ids, v.response_ids) for j in judgements for v in j.votes]
    assert largest(row_logprobs(model, [row]) - torch.cat(alone)) < TOLERANCE


@pytest.mark.parametrize("most", [1, 20, 40, 1000])
def test_a_tree_is_cut_until_each_part_fits_or_holds_one_vote(model, most):
    judgements = judged(7, steps=5)
    (whole,) = reward_rows(verdicts(judgements), "step")
    parts = reward_rows(verdicts(judgements), "step", most)
    assert all(len(row.ids) <= most or row.target.count(END) == 1 for row in parts)
    assert (len(parts) > 1) == (len(whole.ids) > most)
    for name in ("target", "old", "advantage", "weight"):
        assert [x for row in parts for x in getattr(row, name)] == getattr(whole, name)
    together = torch.cat([row_logprobs(model, [row]) for row in parts])
    assert largest(row_logprobs(model, [whole]) - together) < TOLERANCE


@given(st.integers(0, 10**6), st.integers(1, 32), st.integers(1, 200), st.data())
def test_the_replies_to_one_question_are_halved_and_each_row_repeats_the_prompt(seed, m, most, data):
    (question,) = judged(seed, steps=1, m=m)
    advantages = data.draw(st.lists(st.sampled_from([None, -1.0, 0.5]), min_size=m, max_size=m))
    scored = verdicts([question], [advantages])
    whole, parts = reward_rows(scored, "step"), reward_rows(scored, "step", most)
    if not whole or len(whole[0].ids) <= most:
        assert parts == whole
        return
    for row in parts:
        assert tuple(row.ids[: len(question.prompt_ids)]) == question.prompt_ids
        assert len(row.ids) <= most or row.target.count(END) == 1
    for name in ("target", "allowed", "old", "reference", "advantage", "weight"):
        assert [x for row in parts for x in getattr(row, name)] == getattr(whole[0], name)


def test_a_row_that_fits_is_the_row_without_a_limit_byte_for_byte():
    for seed in range(20):
        scored = verdicts(judged(seed, steps=3))
        (whole,) = reward_rows(scored, "step")
        assert repr(reward_rows(scored, "step", len(whole.ids))) == repr([whole])


def test_questions_that_fit_alone_are_cut_between_questions_only():
    judgements = judged(7, steps=5)
    most = max(len(row.ids) for j in judgements for row in reward_rows(verdicts([j]), "step"))
    rows = reward_rows(verdicts(judgements), "step", most)
    assert len(rows) > 1
    assert all(row.target.count(END) % 3 == 0 for row in rows)


def test_padding_a_tree_beside_a_longer_one_changes_no_logprob(model):
    rows = [reward_rows(verdicts(judged(s, steps=n)), "step")[0] for s, n in ((0, 1), (1, 5))]
    apart = torch.cat([row_logprobs(model, [row]) for row in rows])
    assert largest(row_logprobs(model, rows) - apart) < TOLERANCE


def test_the_trunk_of_a_tree_is_read_once():
    judgements = judged(7, steps=5)
    (row,) = reward_rows(verdicts(judgements), "step")
    apart = sum(len(j.prompt_ids) + len(v.response_ids) for j in judgements for v in j.votes)
    assert len(row.ids) < apart / 3


def test_questions_without_anything_in_common_still_make_a_correct_tree(model):
    rng = random.Random(0)
    judgements = [Judgement((k, *words(rng, 2, 5)), (vote((*words(rng, 1, 2), END)),)) for k in (5, 6)]
    (row,) = reward_rows(verdicts(judgements), "token")
    alone = torch.cat(
        [separate_logprobs(model, j.prompt_ids, v.response_ids) for j in judgements for v in j.votes]
    )
    assert largest(row_logprobs(model, [row]) - alone) < TOLERANCE


def test_a_step_asked_twice_the_same_way_keeps_a_token_to_predict_from(model):
    same = judged(8, steps=1)[0]
    (row,) = reward_rows(verdicts([same, same]), "token")
    alone = torch.cat([separate_logprobs(model, same.prompt_ids, v.response_ids) for v in same.votes])
    assert largest(row_logprobs(model, [row]) - alone.repeat(2)) < TOLERANCE


def test_votes_without_an_advantage_are_neither_read_nor_trained(model):
    judgements = judged(9, steps=2)
    (row,) = reward_rows(verdicts(judgements, [(1.0, None, -1.0), (None, None, None)]), "step")
    kept = [judgements[0].votes[0], judgements[0].votes[2]]
    assert row.target == [t for v in kept for t in v.response_ids]
    assert row.advantage == [1.0] * len(kept[0].response_ids) + [-1.0] * len(kept[1].response_ids)
    alone = [separate_logprobs(model, judgements[0].prompt_ids, v.response_ids) for v in kept]
    assert largest(row_logprobs(model, [row]) - torch.cat(alone)) < TOLERANCE


def test_a_judged_trajectory_in_which_no_vote_trains_gives_no_row():
    assert reward_rows(verdicts(judged(0, steps=1), [(None, None, None)]), "step") == []


def test_a_trajectory_whose_questions_did_not_fit_gives_no_row():
    assert reward_rows(verdicts([]), "step") == []


def test_every_vote_weighs_as_much_as_its_step_unless_tokens_count_the_same():
    judgements = judged(10, steps=2)
    scored = verdicts(judgements)
    heavy = type(scored)(scored.questions, scored.advantages, (2.0, 0.5))
    lengths = [len(v.response_ids) for j in judgements for v in j.votes]
    for kind in ("step", "trajectory"):
        assert sum(reward_rows(heavy, kind)[0].weight) == pytest.approx(3 * 2.0 + 3 * 0.5)
    weights = reward_rows(heavy, "token")[0].weight
    assert weights == [w for k, n in enumerate(lengths) for w in [2.0 if k < 3 else 0.5] * n]


def units(count: int = 7):
    return [policy_rows(lesson(dialogue(seed)), "trajectory") for seed in range(count)]


def test_minibatches_are_the_same_every_time_and_others_in_the_next_iteration():
    same = [minibatches(units(), 3, 5, 0, "policy") for _ in range(2)]
    assert same[0] == same[1]
    assert minibatches(units(), 3, 5, 1, "policy") != same[0]
    assert minibatches(units(), 3, 6, 0, "policy") != same[0]


def test_the_weights_of_every_minibatch_sum_to_one():
    for batch in minibatches(units(), 3, 5, 0, "policy"):
        assert sum(sum(row.weight) for row in batch) == pytest.approx(1.0)


@pytest.mark.parametrize("updates", [1, 3, 7, 10])
def test_minibatches_lose_nothing_and_repeat_nothing(updates):
    given = units()
    batches = minibatches(copy.deepcopy(given), updates, 5, 0, "policy")
    found = [row.ids for batch in batches for row in batch]
    assert sorted(found) == sorted(row.ids for unit in given for row in unit)
    assert len(batches) == min(updates, len(given))
    assert all(batches)


def test_all_rows_of_a_trajectory_stay_in_one_minibatch():
    steps = dialogue(3)
    unit = policy_rows(lesson([steps[0], step((9, 9), (8, END))]), "step")
    assert len(unit) == 2
    batches = minibatches([*units(3), unit], 4, 0, 0, "policy")
    assert [sum(row in batch for row in unit) for batch in batches].count(2) == 1


def test_units_without_weight_make_no_minibatch():
    unit = policy_rows(lesson(dialogue(0)), "step")
    for row in unit:
        row.weight = [0.0] * len(row.weight)
    assert minibatches([unit], 2, 0, 0, "policy") == []


def test_micro_batches_hold_every_row_once_and_no_more_padded_tokens_than_allowed():
    trees = [reward_rows(verdicts(judged(s)), "step")[0] for s in range(4)]
    rows = [row for unit in units() for row in unit] + trees
    groups = micro_batches(rows, 90)
    assert sorted(row.ids for group in groups for row in group) == sorted(row.ids for row in rows)
    assert any(len(group) > 1 for group in groups)
    for group in groups:
        assert len(group) == 1 or max(len(row.ids) for row in group) * len(group) <= 90
        assert len({row.branched for row in group}) == 1
