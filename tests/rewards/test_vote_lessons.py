"""The warm start of a voting reward model: it needs rollouts of the base policy with steps to ask about."""

from __future__ import annotations

import pytest
from scripted import chat_model
from stage_cases import ROOT, small

from envs.alfworld.family import AlfworldFamily
from rlanything.core.errors import ConfigError, EnvironmentFailure
from rlanything.rewards.kind import kind_of
from rlanything.runs import build

ROOM = 100
"""What a prompt may have beside the longest reply."""


@pytest.mark.parametrize(
    ("acting", "asking", "told"),
    [(3_900, 60, "0 have a step"), (60, 3_900, "2 have a step")],
    ids=["the policy", "the reward model"],
)
def test_a_context_without_room_for_a_question_is_one_clear_error(acting, asking, told):
    config = small(f"rollout.max_tokens={acting}", f"judge.max_tokens={asking}", "rollout.decoding=free")
    family = build.family(config)
    taught = kind_of(config).warm_start(config, family, build.prompts(config, ROOT))
    policy = chat_model(lambda _: "look", max_context=3_900 + ROOM)
    with pytest.raises(ConfigError, match=rf"of 2 rollouts of the base policy {told} .* judge\.max_tokens"):
        taught.rows(policy, family.make("train", 2, 0))


@pytest.mark.parametrize(
    ("method", "texts"),
    [
        ("demonstrate", ["critic"]),
        ("label_steps", ["critic", "rows"]),
        ("explain", ["critic", "rows", "corpus"]),
    ],
)
def test_what_the_teacher_fails_at_is_named_with_its_task(method, texts, monkeypatch):
    config, family = small("rollout.decoding=free"), AlfworldFamily()
    taught = kind_of(config).warm_start(config, family, build.prompts(config, ROOT))
    (task,) = family.make("train", 1, 0)
    demo = family.demonstrate(task, 0, 0.0)

    def fails(*_):
        raise KeyError("room")

    monkeypatch.setattr(AlfworldFamily, method, fails)
    asked = {
        "critic": lambda: taught.critic(task, 0),
        "corpus": lambda: taught.corpus([task], [demo]),
        "rows": lambda: taught.rows(chat_model(lambda _: "look", max_context=4_000), [task]),
    }
    said = rf"env: AlfworldFamily\.{method} failed for task {task.task_id[:12]} \(.*\): KeyError: 'room'"
    for text in texts:
        with pytest.raises(EnvironmentFailure, match=said):
            asked[text]()
