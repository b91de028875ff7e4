"""Calls and tokens of one iteration, from the configuration and from assumptions that are stated.

Where a model re-reads a prompt, it is counted again, as the engine `transformers` does; the engine `native` reads once
what the turns of a conversation, or the questions about an episode, begin with alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.config import ArmConfig, Config
from rlanything.planning.check import NATIVE
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.prompts import (
    Questions,
    Rows,
    policy_prompts,
    policy_rows,
    questions,
    reply,
)
from rlanything.rewards.kind import kind_of
from rlanything.targets import TARGET


@dataclass(frozen=True)
class Calls:
    """The generations of one kind in an iteration, or in a measurement."""

    name: str
    model: str
    """Who generates: `policy`, `reward`, `adapter`, or another model by its name (`costs.measuring`)."""
    count: float
    at_once: float
    """Most of them that an engine is given together."""
    read: float
    """Tokens of prompts that are read, all calls together."""
    written: float
    """Tokens that are sampled, all calls together."""
    longest: int
    """Tokens of the longest prompt with its reply."""


@dataclass(frozen=True)
class Workload:
    """What one iteration of one seed asks of the models."""

    episodes: float
    calls: tuple[Calls, ...]
    rows: dict[str, tuple[Rows, ...]]
    """Rows of training by model."""
    undivided: dict[str, int]
    """Tokens of the longest row that no setting makes shorter: of the reward model, one question with its replies."""

    @property
    def trained(self) -> dict[str, float]:
        """Tokens of training rows by model."""
        return {name: sum(row.count * row.tokens for row in rows) for name, rows in self.rows.items()}

    @property
    def longest_row(self) -> dict[str, int]:
        """Tokens of the longest row by model."""
        return {name: max(row.tokens for row in rows) for name, rows in self.rows.items()}


def workload(config: Config, arm_name: str, positions: dict[str, int], given: Assumptions) -> Workload:
    """The work of one iteration. `positions`: longest context of each model. Raises `ConfigError` for an unknown arm.

    An upper bound for an arm that adapts: every proposal is valid, after as many attempts as there may be.
    """
    arm, most = config.arm(arm_name), config.learn.micro_batch_tokens
    episodes = _episodes(config, arm, given)
    prompts = policy_prompts(config, positions["policy"], given, config.rollout.max_steps)
    calls = [acting(config, episodes, prompts, given)]
    trained = min(episodes, _episodes(config, arm.model_copy(update={"max_batches": 1}), given))
    rows = {"policy": tuple(policy_rows(config, prompts, trained, given))}  # replaced tasks do not train
    undivided = {"policy": max(row.tokens for row in rows["policy"])}
    if config.asks_model(arm):
        asked = questions(config, prompts, positions["reward"], given)
        judged = _judged(config, episodes)
        calls.append(judging(config, judged, asked))
        if arm.train_reward:
            rows["reward"] = tuple(asked.rows(judged, most))
            undivided["reward"] = max(row.tokens for row in asked.rows(judged, 1))
    if arm.adapt:
        calls += _adapting(config, len(prompts), positions["adapter"], given)
    return Workload(episodes, tuple(calls), rows, undivided)


def _episodes(config: Config, arm: ArmConfig, given: Assumptions) -> float:
    """Those of the buffer's tasks, and of the proposals on top of them."""
    tasks = min(config.rollout.tasks * arm.max_batches, config.tasks.train)
    return tasks * config.rollout.rollouts * (1 + given.rewritten_share * arm.adapt)


def _judged(config: Config, episodes: float) -> float:
    """Episodes that the reward model is asked about, or tasks where it writes tests."""
    asked = config.rollout.max_steps * config.judge.m
    return kind_of(config).count_replies(config, round(episodes)) / asked


def _once(config: Config) -> bool:
    return bool(config.engine[TARGET] == NATIVE)


def acting(
    config: Config,
    episodes: float,
    prompts: Sequence[int],
    given: Assumptions,
    *,
    name: str = "act",
    model: str = "policy",
) -> Calls:
    """A policy's steps. A conversation's prompt begins with the one before and its reply; a history's does not."""
    said, turns = reply(config.rollout.max_tokens, given), len(prompts)
    once = _once(config) and config.model.context == "chat"
    read = prompts[-1] - (turns - 1) * said if once else sum(prompts)
    written = episodes * turns * said
    return Calls(name, model, episodes * turns, episodes, episodes * read, written, prompts[-1] + said)


def judging(
    config: Config, judged: float, asked: Questions, *, name: str = "judge", model: str = "reward"
) -> Calls:
    """The replies of a reward model or a judge about `judged` episodes or tasks; all are asked for together."""
    count = judged * len(asked.prompts) * asked.replies
    read = judged * (asked.read if _once(config) else asked.replies * sum(asked.prompts))
    return Calls(name, model, count, count, read, count * asked.reply, asked.prompts[-1] + asked.reply)


def _adapting(config: Config, steps: int, positions: int, given: Assumptions) -> list[Calls]:
    """Critics of every failed rollout of the tasks that are rewritten, then `attempts` replies for each of these tasks.

    Every rollout of these tasks fails and every attempt is needed. With two stages every step is marked. A critic
    without a model quotes as much as the replies about a step, or the tests of a task, say.
    """
    adaptation, tasks = config.adaptation, config.rollout.tasks * given.rewritten_share
    failed = tasks * config.rollout.rollouts
    votes = config.judge.m * reply(config.judge.max_tokens, given)
    step = given.past_tokens + given.action_tokens
    said, room = reply(adaptation.max_tokens, given), max(1, positions - adaptation.max_tokens)

    def calls(name: str, count: float, at_once: float, shown: int) -> Calls:
        prompt = min(room, given.guide_tokens + shown)
        return Calls(name, "adapter", count, at_once, count * prompt, count * said, prompt + said)

    result, shown, critic = [], steps * step, votes
    if kind_of(config).replies.per_task:  # a program and the tests that it fails
        shown = reply(config.rollout.max_tokens, given) + votes
    elif adaptation.critic_stages == 2 and adaptation.critic == "model":
        result.append(calls("critic, steps", failed * steps, failed * steps, step + votes))
        shown = steps * given.summary_tokens
    if adaptation.critic == "model":
        result.append(calls("critic", failed, failed, given.opening_tokens + shown))
        critic = config.rollout.rollouts * given.summary_tokens
    result.append(calls("adapt", tasks * adaptation.attempts, tasks, given.opening_tokens + critic))
    return result
