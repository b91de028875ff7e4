"""Judging: which questions are asked about which steps; panels: how votes and outcomes become scores."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest
from scripted import Family, chat_model, prompts, read, rollout_worker, task, voting, winning

from rlanything.config import JudgeConfig, parse
from rlanything.core.types import Status, Step, Trajectory
from rlanything.files.records import write_lines
from rlanything.loop.panel import lengths, play_panel, success_rate, success_within, successes
from rlanything.planning import compose
from rlanything.rewards.step_votes.evaluation import (
    RewardScore,
    VoteEvaluation,
    ask,
    left_out,
    outcome_accuracy,
    plain_accuracy,
    process_accuracy,
    score,
    verdicts,
)
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.labels import LabelledTrajectory, label_by_votes
from rlanything.runs.layout import Layout
from rlanything.runs.panels import Curve

ROOT = Path(__file__).parents[2]


def judge(*verdicts: str, max_context: int = 10_000, m: int = 3) -> Judge:
    return Judge(chat_model(voting(verdicts), max_context), prompts(), JudgeConfig(m=m, max_tokens=8))


def episode(*actions: str, outcome: int = 1, name: str = "t", rollout: int = 0) -> Trajectory:
    steps = tuple(Step((1,), (2,), (-0.1,), ((),), a, True, f"seen {k}") for k, a in enumerate(actions))
    return Trajectory(name, 0, rollout, 0, "first", steps, outcome, Status.OK)


def test_every_step_is_asked_about_m_times_and_the_votes_keep_their_order():
    asking = judge("fine: good", "bad", "hm")
    ((first, second),) = asking.judge([episode("a", "b")], 1, 0)
    assert [v.verdict for v in first.votes] == [v.verdict for v in second.votes] == [1, -1, None]
    assert [v.reasoning for v in first.votes] == ["fine", "", "hm"]
    assert len(asking.reward.engine.batches) == 1
    assert len(asking.reward.engine.asked) == 6


def test_a_question_shows_the_conversation_up_to_its_step_and_nothing_later():
    first, second = map(read, judge("good").questions(episode("go", "look")))
    assert first == "<system>judge<user>first<assistant>go<user>seen 0?go?<assistant>"
    assert second == (
        "<system>judge<user>first<assistant>go<user>seen 0<assistant>look<user>seen 1?look?<assistant>"
    )


def test_the_questions_of_one_trajectory_share_a_trunk_and_a_group():
    asking = judge("good")
    asking.judge([episode("a", "b"), episode("a", "b", rollout=1)], 1, 0)
    groups = {r.group for r in asking.reward.engine.asked}
    assert len(groups) == 2
    for group in groups:
        texts = [read(r.prompt_ids) for r in asking.reward.engine.asked if r.group == group]
        assert all(t.startswith("<system>judge<user>first<assistant>a<user>seen 0") for t in texts)


def test_every_vote_has_its_own_seed_whatever_is_judged_beside_it():
    both, alone = judge("good"), judge("good")
    one, other = episode("a", "b"), episode("a", "b", rollout=1)
    both.judge([one, other], 1, 0)
    alone.judge([other], 1, 0)
    seeds = [r.seed for r in both.reward.engine.asked]
    assert len(set(seeds)) == 12
    assert [r.seed for r in alone.reward.engine.asked] == seeds[6:]


@pytest.mark.parametrize("status", [Status.ENV_ERROR, Status.TIMEOUT])
def test_crashed_trajectories_get_no_judgements(status):
    asking = judge("good")
    judged = asking.judge([replace(episode("a"), status=status), episode("a")], 1, 0)
    assert [len(j) for j in judged] == [0, 1]
    assert len(asking.reward.engine.asked) == 3


def test_late_questions_that_do_not_fit_the_context_are_left_out():
    asking = judge("good", max_context=90)
    asked = asking.questions(episode(*"abcdefgh"))
    assert 0 < len(asked) < 8
    assert asked == judge("good").questions(episode(*"abcdefgh"))[: len(asked)]


def test_judgements_stay_with_their_steps_when_an_early_question_is_too_long():
    wordy = episode("x" * 100, "b")
    first, second = judge("good").questions(wordy)
    assert len(second) < len(first)
    assert judge("good", max_context=len(second) + 8).questions(wordy) == []


def measured(asking: Judge, panel: list[LabelledTrajectory]) -> dict[str, RewardScore]:
    return score(panel, verdicts(ask(asking, panel, 1)))


def labelled(*labels: bool | None, outcome: int = 1, name: str = "t") -> LabelledTrajectory:
    return LabelledTrajectory(episode(*["a"] * len(labels), outcome=outcome, name=name), labels)


def test_a_labelled_trajectory_survives_json():
    item = labelled(True, False)
    assert LabelledTrajectory.from_json(json.loads(json.dumps(item.to_json()))) == item


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (("good", "good", "bad"), RewardScore((3, 3), (0, 1), (4, 4))),
        (("bad", "bad", "good"), RewardScore((0, 3), (1, 1), (0, 4))),
        (("good", "bad", "?"), RewardScore((0, 3), (0, 1), (0, 4))),
        (("good", "?", "?"), RewardScore((3, 3), (0, 1), (4, 4))),
    ],
)
def test_the_majority_of_the_valid_votes_is_compared_with_the_label_and_the_outcome(votes, expected):
    assert measured(judge(*votes), [labelled(True, True, True, False)]) == {"t": expected}


def test_a_reward_model_that_always_approves_has_balanced_accuracy_one_half():
    panel = [labelled(True, True, True, False), labelled(True, False, outcome=-1, name="u")]
    scores = measured(judge("good"), panel)
    assert process_accuracy(scores) == 0.5
    assert plain_accuracy(scores) == pytest.approx(4 / 6)
    assert outcome_accuracy(scores) == pytest.approx(4 / 6)


def test_process_accuracy_weighs_good_and_bad_steps_the_same():
    scores = {"a": RewardScore((9, 10), (1, 2), (0, 12)), "b": RewardScore((9, 10), (0, 0), (6, 12))}
    assert process_accuracy(scores) == pytest.approx((0.9 + 0.5) / 2)
    assert plain_accuracy(scores) == pytest.approx(19 / 22)
    assert outcome_accuracy(scores) == 0.25


@pytest.mark.parametrize(
    ("votes", "labels", "missing"),
    [
        (("good", "good", "bad", "good"), (True, True), {}),
        (("bad", "bad", "?", "good"), (False, False), {}),
        (("good", "bad", "?", "?"), (None, None), {"ties": 2}),
        (("?", "?", "hm", ""), (None, None), {"invalid": 2}),
    ],
)
def test_a_judges_label_is_the_majority_of_its_votes_and_a_tie_is_none(votes, labels, missing):
    (item,) = label_by_votes(judge(*votes, m=4), [episode("a", "b")], 1)
    assert (item.labels, item.left_out) == (labels, missing)
    assert LabelledTrajectory.from_json(json.loads(json.dumps(item.to_json()))) == item


def test_steps_that_the_judge_cannot_be_asked_about_have_no_label():
    (item,) = label_by_votes(judge("good", max_context=90), [episode(*"abcdefgh")], 1)
    unasked = item.left_out["unasked"]
    assert 0 < unasked < 8
    assert item.labels == (True,) * (8 - unasked) + (None,) * unasked
    assert left_out([item]) == {"labelled": 8 - unasked, "ties": 0, "invalid": 0, "unasked": unasked}


def test_a_step_without_a_label_counts_for_the_outcome_alone():
    scores = measured(judge("good"), [labelled(True, None, False)])
    assert scores == {"t": RewardScore((1, 1), (0, 1), (3, 3))}


def evaluated(asking: Judge, **changes: object) -> VoteEvaluation:
    config = parse(compose.compose([], ROOT))
    evaluate = config.evaluate.model_copy(update=changes)
    return VoteEvaluation(config.model_copy(update={"evaluate": evaluate}), None, asking)


@pytest.mark.parametrize(
    ("outcomes", "said", "objection"),
    [
        ([1, -1], "good", "mu = 1.000, below bootstrap.min_mu = 1.05"),
        ([-1, -1], "good", "cannot be measured: the panel has no success, or no failure"),
        ([1, -1], "hm", "or all votes on one of them are unreadable"),
    ],
)
def test_training_does_not_start_with_votes_that_say_nothing_or_cannot_be_measured(outcomes, said, objection):
    panel = [labelled(True, outcome=outcome).to_json() for outcome in outcomes]
    first = evaluated(judge(said)).assess(panel)
    assert objection in first.objection


def test_training_starts_with_a_reward_model_that_is_right_often_enough():
    asking = Judge(
        chat_model(lambda request: "good" if "up" in read(request.prompt_ids) else "bad"),
        prompts(),
        JudgeConfig(max_tokens=8),
    )
    panel = [
        LabelledTrajectory(episode("up"), (True,)),
        LabelledTrajectory(episode("on", outcome=-1), (False,)),
    ]
    first = evaluated(asking).assess([item.to_json() for item in panel])
    assert (first.metrics["mu"], first.objection) == (2.0, "")


def test_two_judges_stand_side_by_side_and_the_steps_are_judged_once():
    asking = judge("good")
    strict, kind = labelled(True, False, None).to_json(), labelled(True, True, True).to_json()
    found = evaluated(asking, labels="judge").results({"strict": [strict], "kind": [kind]}, 1)
    assert len(asking.reward.engine.batches) == 1
    assert (
        found["rm_process"]
        == found["labels"]["strict"]["rm_process"]
        == {"t": {"good": [1, 1], "bad": [0, 1]}}
    )
    assert found["labels"]["kind"]["rm_process"] == {"t": {"good": [3, 3], "bad": [0, 0]}}
    assert found["rm_outcome"] == {"t": [3, 3]}
    assert found["labels"]["kind"]["left_out"] == {"labelled": 3, "ties": 0, "invalid": 0, "unasked": 0}


def test_the_oracles_labels_are_one_block_of_the_results():
    found = evaluated(judge("good")).results({"oracle": [labelled(True).to_json()]}, 1)
    assert list(found) == ["rm_process", "rm_pairwise", "rm_outcome"]


def test_the_first_reward_model_is_asked_once_for_all_that_is_known_of_it():
    asking = judge("good", "good", "bad")
    panel = [labelled(True, True, False), labelled(False, True, outcome=-1, name="u")]
    found = evaluated(asking).assess([item.to_json() for item in panel])
    assert len(asking.reward.engine.asked) == 3 * 5
    assert found.metrics == pytest.approx(
        {"p_plus": 2 / 3, "p_minus": 1 / 3, "mu": 1.0, "rm_process": 0.5, "good_steps": 0.6}
    )
    bare = [replace(item, labels=(None,) * len(item.labels)).to_json() for item in panel]
    assert set(evaluated(asking).assess(bare).metrics) == {"p_plus", "p_minus", "mu"}


@pytest.mark.parametrize(("least", "fit"), [(1.05, False), (1.0, True), (0.0, True)])
def test_a_first_reward_model_whose_mu_is_too_small_is_objected_to(least, fit):
    panel = [labelled(True).to_json(), labelled(False, outcome=-1, name="u").to_json()]
    asking = evaluated(judge("good"))
    bootstrap = asking.config.bootstrap.model_copy(update={"min_mu": least})
    asking.config = asking.config.model_copy(update={"bootstrap": bootstrap})
    found = asking.assess(panel)
    assert found.metrics["mu"] == 1.0
    assert (found.objection == "") is fit


def test_a_curve_takes_whole_tasks_with_a_few_trajectories_of_each():
    lines = [
        LabelledTrajectory(episode("a", name=name, rollout=k), (True,)).to_json()
        for name in "tuv"
        for k in range(3)
    ]
    part = evaluated(judge("good")).part(lines, 2, 2)
    assert [(x["trajectory"]["task_id"], x["trajectory"]["rollout"]) for x in part] == [
        ("t", 0), ("t", 1), ("u", 0), ("u", 1),
    ]  # fmt: skip
    assert evaluated(judge("good")).part(lines, 9, 9) == lines


def test_success_rate_is_the_mean_over_tasks_and_leaves_out_what_only_crashed():
    assert success_rate({"a": [1, 1, 1, 1], "b": [0], "c": []}) == 0.5
    assert isnan(success_rate({"c": []}))


def test_a_panel_counts_successes_per_task_and_leaves_crashes_out():
    tasks = [task(0), task(1), task(2, fault="raise in step")]
    played = play_panel(rollout_worker(winning({0: 3, 1: 1, 2: 3})), tasks, 5, 3, 0.8, 4)
    assert successes(tasks, played) == {
        tasks[0].task_id: [1, 1, 1],
        tasks[1].task_id: [1, 0, 0],
        tasks[2].task_id: [],
    }


def test_success_within_k_steps_is_what_a_limit_of_k_would_have_given():
    tasks = [task(0), task(1), task(2, steps=3), task(3, fault="raise in step")]
    script = winning({0: 2, 1: 1, 2: 2, 3: 2})
    played = play_panel(rollout_worker(script), tasks, 5, 2, 0.8, 4)
    within = success_within(tasks, played, 4, Family())
    assert within == pytest.approx([0, 0.5, 5 / 6, 5 / 6])
    for limit in (1, 2, 3, 4):
        limited = play_panel(rollout_worker(script), tasks, 5, 2, 0.8, limit)
        assert success_rate(successes(tasks, limited)) == pytest.approx(within[limit - 1])
    assert lengths(tasks, played) == {
        t.task_id: [n, n] if n else [] for t, n in zip(tasks, (2, 2, 3, 0), strict=True)
    }
    assert success_within(tasks, [], 2, Family()) == [None, None]


def test_a_family_that_judges_at_the_limit_says_nothing_about_lower_ones():
    """An episode that had reached its goal at step 1, and never ended, is judged a success at the limit alone."""

    class AtLimit(Family):
        def verdicts(self, environments):
            raise NotImplementedError

    tasks = [task(0), task(1)]
    played = play_panel(rollout_worker(winning({0: 2, 1: 1})), tasks, 5, 2, 0.8, 4)
    assert success_within(tasks, played, 4, AtLimit()) == [None, None, None, 0.75]


def test_a_curve_counts_the_episodes_that_crashed_and_says_nothing_where_none_did(tmp_path):
    config = parse(compose.compose(["evaluate.temperature=0.8", "evaluate.max_steps=4"], ROOT))
    layout = Layout(tmp_path)
    panels = {"in_domain": [task(0), task(1)], "out_of_domain": [task(0), task(1, fault="raise in step")]}
    for name, tasks in panels.items():
        write_lines(layout.tasks(name), [one.to_json() for one in tasks])
    acting = rollout_worker(winning({0: 1, 1: 0}))
    curve = Curve(config, config.arms["outcome"], 5, layout, acting, None)
    assert curve.measure(0) == {
        "panel/in_domain": 0.5,
        "panel/out_of_domain": 1.0,
        "crashed/out_of_domain": 1.0,
    }


def test_two_policies_meet_the_same_panel_draws():
    seeds = []
    for wins in (3, 0):
        acting = rollout_worker(winning({0: wins, 1: wins}))
        play_panel(acting, [task(0), task(1)], 5, 3, 0.8, 4)
        seeds.append([r.seed for r in acting.policy.engine.asked])
    assert seeds[0] == seeds[1]


def test_a_task_meets_the_same_draws_wherever_it_stands_in_the_panel():
    def seeds(*tasks):
        acting = rollout_worker(winning({0: 1, 1: 1}))
        play_panel(acting, tasks, 5, 2, 0.8, 4)
        return {r.seed for r in acting.policy.engine.asked if r.session.split("/")[1] == task(0).task_id}

    assert seeds(task(0), task(1)) == seeds(task(1), task(0)) == seeds(task(0))
