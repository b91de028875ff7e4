"""What policy and reward model are shown: the latest pictures, at their places in the prompt."""

from __future__ import annotations

import pytest
from executor_cases import SAMPLING
from image_cases import png
from scripted import Family, prompts, task
from sight_cases import KINDS, folder, loaded
from stage_cases import ROOT

from rlanything.config import JudgeConfig, RolloutConfig
from rlanything.core.errors import ConfigError
from rlanything.core.images import Image
from rlanything.core.records.rollouts import judgements_from_json, judgements_to_json
from rlanything.core.types import ScoredTrajectory
from rlanything.engines.chat import Chat
from rlanything.engines.sight import eyes as sight
from rlanything.engines.transformers import TransformersEngine
from rlanything.files.images import ImageStore
from rlanything.learn.losses import pack, target_logprobs
from rlanything.learn.packing import policy_rows
from rlanything.loop.chat_model import ChatModel, Sight
from rlanything.loop.prompts import Prompts
from rlanything.loop.rollout import Assignment, RolloutWorker
from rlanything.rewards.step_votes.judge import Judge

NAMES = [Image(png(shade=k)).sha256 for k in range(5)]
"""What the small world shows: at first, and after each of four steps."""
OSWORLD = ROOT / "experiments" / "prompts" / "paper" / "osworld"
SPOKEN = {
    "policy_history": "play\n$history$pictures$observation|$actions",
    "judge_history": "judge $before then $action then $after: $observation? [$prompt] [$response]",
}


def chat_model(kind, store, last):
    model, tokenizer, _ = loaded(kind)
    eyes = sight.load(str(folder(kind)), None, model, store.get)
    engine = TransformersEngine(model, tokenizer, eyes=eyes)
    return ChatModel(engine, Chat(tokenizer, eyes), 4096, Sight(last, store, eyes))


def spoken(**changed):
    return prompts("verbatim", "boxed", "history", **{**SPOKEN, **changed})


@pytest.fixture(params=KINDS)
def world(request, tmp_path):
    """(policy, trajectories): three latest pictures, two episodes of four steps."""
    store = ImageStore(tmp_path)
    policy = chat_model(request.param, store, 3)
    config = RolloutConfig(max_tokens=5, timeout_s=30.0, decoding="constrained")
    worker = RolloutWorker(Family(), policy, spoken(), config, store)
    work = [Assignment(0, task(1, steps=4, shows=True, actions=("win", "lose")), 2)]
    return request.param, store, policy, worker.roll_out(work, SAMPLING)


def test_the_policy_is_shown_the_three_latest_pictures(world):
    _, _, policy, trajectories = world
    for trajectory in trajectories:
        assert [s.prompt_images for s in trajectory.steps] == [
            tuple(NAMES[:1]), tuple(NAMES[:2]), tuple(NAMES[:3]), tuple(NAMES[1:4]),
        ]  # fmt: skip
        for step in trajectory.steps:
            places = step.prompt_ids.count(policy.sight.eyes.token)
            assert places == len(step.prompt_images) * policy.sight.eyes.tokens(4, 3)
            assert "play\n" in step.prompt_text
            assert "image_pad" not in step.prompt_text


def test_what_the_policy_did_is_recomputed_from_the_record_alone(world):
    kind, _, policy, trajectories = world
    rows = [row for t in trajectories for row in policy_rows(ScoredTrajectory(t, (1.0,) * 4), "token")]
    assert len(rows) == 8
    fresh = target_logprobs(loaded(kind)[0], pack(rows, eyes=policy.sight.eyes))
    recorded = [x for row in rows for x in row.old]
    assert max(abs(a - b) for a, b in zip(fresh.tolist(), recorded, strict=True)) < 2e-5


def test_the_judge_is_shown_the_picture_before_the_action_and_the_one_after_it(world):
    kind, store, _, trajectories = world
    reward = chat_model(kind, store, 2)
    judge = Judge(reward, spoken(), JudgeConfig(m=2, max_tokens=4))
    judged = judge.judge(trajectories, 1, 0)
    for judgements in judged:
        assert [j.images for j in judgements] == [(NAMES[k], NAMES[k + 1]) for k in range(4)]
        assert judgements_from_json(judgements_to_json(judgements)) == judgements
    text = loaded(kind)[1].decode(judged[0][1].prompt_ids)
    before, middle, _ = text.split("<|vision_start|>")
    assert before.endswith("judge ")
    assert f" then {trajectories[0].steps[1].action} then " in middle
    assert "answered" not in text


def test_with_one_picture_the_judge_sees_the_result_alone(world):
    kind, store, _, trajectories = world
    judge = Judge(chat_model(kind, store, 1), spoken(), JudgeConfig(m=1, max_tokens=4))
    assert [p.images for p in judge.asked(trajectories[0])] == [(name,) for name in NAMES[1:]]


def test_a_missing_picture_is_an_error_that_names_it_before_the_model_is_asked(world):
    kind, store, _, trajectories = world
    reward = chat_model(kind, ImageStore(store.folder / "elsewhere"), 2)
    with pytest.raises(ConfigError, match=rf"{NAMES[0]}\.png: no such file; a record names this picture"):
        Judge(reward, spoken(), JudgeConfig(m=1, max_tokens=4)).asked(trajectories[0])


def test_a_template_without_a_place_for_pictures_is_refused_where_they_are_to_be_shown():
    bare = prompts("verbatim", "boxed", "history")
    bare.require_places({"policy": 0, "reward": 0})
    with pytest.raises(
        ConfigError, match=r"images\.policy = 3: the template policy_history\.txt .* \$pictures"
    ):
        bare.require_places({"policy": 3, "reward": 0})
    with pytest.raises(ConfigError, match=r"judge_history\.txt .* it lacks \$after, \$before"):
        bare.require_places({"policy": 0, "reward": 2})
    spoken().require_places({"policy": 3, "reward": 2})
    spoken(judge_history="$after?").require_places({"policy": 1, "reward": 1})


def test_the_shipped_prompts_for_screens_have_what_the_paper_shows(world):
    """Policy: all earlier actions as text, the latest pictures, the task. RM: two pictures, the action between them."""
    kind, store, _, trajectories = world
    loaded_prompts = Prompts.load(OSWORLD, "verbatim", "boxed", "history")
    loaded_prompts.require_places({"policy": 3, "reward": 2})
    part = {"type": "image", "image": NAMES[0], "width": 4, "height": 3}
    past = [("the task and a page", "click 1"), ("another page", "type 2 x")]
    content = loaded_prompts.history_turn(past, "now", (), [part])["content"]
    before, shown, after = content
    assert shown == part
    assert before["text"].count("the task and a page") == 1
    answered = [before["text"].index(f"Your answer: {action}\n") for _, action in past]
    assert answered == sorted(answered)
    assert "now" in before["text"][answered[1] :]
    assert "The newest screenshot shows the screen as it is now." in after["text"]
    judge = Judge(chat_model(kind, store, 2), loaded_prompts, JudgeConfig(m=1, max_tokens=4))
    text = loaded(kind)[1].decode(judge.asked(trajectories[0])[1].ids)
    first, between, _ = text.split("<|vision_start|>")
    assert first.endswith("The screen before the step:\n")
    assert f"The answer that was read from it: {trajectories[0].steps[1].action}\n" in between


@pytest.mark.parametrize("said", ["$pictures", "${pictures}", "$$pictures", "$before", "<|image_pad|>"])
def test_a_place_for_pictures_that_an_environment_writes_stays_text(said):
    part = {"type": "image", "image": NAMES[0], "width": 4, "height": 3}
    message = spoken().history_turn([(said, said)], said, [said], [part])
    assert [p["type"] for p in message["content"]] == ["text", "image", "text"]
    assert message["content"][2]["text"] == f"{said}|1. {said}"
    assert message["content"][0]["text"] == f"play\n{said} > {said}\n"


@pytest.mark.parametrize("place", ["$pictures", "${pictures}"])
def test_without_pictures_a_prompt_is_a_text_without_their_places(place):
    with_place = spoken(policy_history=f"play $$5 $history{place}$observation|$actions")
    without = spoken(policy_history="play $$5 $history$observation|$actions")
    turn = with_place.history_turn((), "here", ["go"])
    assert turn == without.history_turn((), "here", ["go"]) == {
        "role": "user", "content": "play $5 here|1. go",
    }  # fmt: skip
