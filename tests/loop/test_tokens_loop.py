"""Text games in the real loop: votes, the model critic, the edit `tokens`, and the new task in the next iteration."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scripted import FULL, chat_model, prompts, read

from envs.alfworld.family import AlfworldFamily
from rlanything.buffer import TaskBuffer
from rlanything.config import AdaptationConfig, JudgeConfig, RolloutConfig, SignalsConfig, TrainConfig
from rlanything.core.types import EventKind, InvalidProposal, Task
from rlanything.loop.adapt import Adapter
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import Loop
from rlanything.loop.rollout import RolloutWorker
from rlanything.rewards.step_votes.judge import Judge
from rlanything.rewards.step_votes.signals import StepVoteModel

FAMILY = AlfworldFamily(edit="tokens")
SUMMARY = "It only looks around."


@pytest.fixture(scope="module")
def parent() -> Task:
    return FAMILY.make("train", 1, 4)[0]


def line_of(parent: Task) -> str:
    """A reply with another pair of types that the room allows."""
    goal = parent.payload["pddl_params"]
    kind = FAMILY.describe(parent).splitlines()[-1].split()[1]
    second = (goal["parent_target"] or goal["toggle_target"]).lower()
    for target in sorted({o.split("|")[0].lower() for o in parent.payload["placements"]}):
        reply = f"task: {kind} object: {target} receptacle: {second}"
        try:
            FAMILY.parse(parent, reply)
        except InvalidProposal:
            continue
        return reply
    raise AssertionError("the room allows no other object")


class Household:
    """A loop whose policy only looks around, whose judge objects, and whose adapter replies with `reply`."""

    def __init__(self, reply: str) -> None:
        def adapter(request):
            return reply if "Objects, by type" in read(request.prompt_ids) else rf"\boxed{{{SUMMARY}}}"

        spoken = prompts()
        self.policy, self.adapter = chat_model(lambda _: "look"), chat_model(adapter)
        config = SimpleNamespace(
            rollout=RolloutConfig(tasks=1, rollouts=2, max_steps=3, max_tokens=8),
            judge=JudgeConfig(m=3, max_tokens=8),
            signals=SignalsConfig(),
            adaptation=AdaptationConfig(critic="model", critic_stages=2, max_tokens=64, attempts=1),
            train=TrainConfig(iterations=9),
        )
        self.loop = Loop(
            config,
            FULL,
            7,
            RolloutWorker(FAMILY, self.policy, spoken, config.rollout),
            StepVoteModel(config, FULL, 7, Judge(chat_model(lambda _: "lost bad"), spoken, config.judge)),
            Adapter(FAMILY, self.adapter, spoken, config.adaptation, 60.0),
        )


def test_the_agent_reads_the_new_types_in_the_next_iteration(parent):
    world = Household(line_of(parent))
    result = world.loop.collect(LoopState(0, TaskBuffer.start([parent])))
    (event,) = result.events
    assert (event.kind, event.critic) == (EventKind.PROPOSED, f"rollout 0: {SUMMARY}\nrollout 1: {SUMMARY}")
    assert len(result.critics[0].criticism.critiques) == 2 * (3 + 1)
    asked = [read(request.prompt_ids) for request in world.adapter.engine.asked]
    assert "action: look\nobservation: " in asked[0]
    assert "- lost" in asked[0]
    assert f"[2, wrong] {SUMMARY}" in asked[6]
    assert event.task.instruction != parent.instruction
    before = len(world.policy.engine.asked)
    world.loop.collect(result.state)
    assert event.task.instruction in read(world.policy.engine.asked[before].prompt_ids)


def test_a_reply_that_changes_more_than_two_types_is_an_invalid_proposal_with_its_reason(parent):
    world = Household(line_of(parent) + " copies: 3")
    (event,) = world.loop.collect(LoopState(0, TaskBuffer.start([parent]))).events
    assert (event.kind, event.task) == (EventKind.INVALID, None)
    assert event.reason == "the reply sets copies: only the types of object and receptacle may change"
