"""Calls and tokens of one iteration, from the configuration and the stated assumptions.

The engine `transformers` reads every prompt in full, so all of its tokens are counted. The engines `native` and `vllm`
read a common prefix of the turns of a conversation, or of the questions about an episode, only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.config import ArmConfig, Config
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.planning.costs.endpoints import endpoint_of
from rlanything.planning.costs.work.prompts import (
    Questions,
    Rows,
    policy_prompts,
    policy_rows,
    questions,
    reply,
    shown_in_prompt,
)
from rlanything.planning.samplers import READ_ONCE
from rlanything.rewards.kind import kind_of
from rlanything.targets import TARGET


@dataclass(frozen=True)
class Calls:
    """The calls of one model for one purpose, in an iteration or in a measurement."""

    name: str
    model: str
    """The model that generates: `policy`, `reward`, `adapter`, or another name of `costs.measuring`."""
    count: float
    at_once: float
    """How many calls an engine gets together at most."""
    read: float
    """Prompt tokens that are read, all calls together."""
    written: float
    """Tokens that are sampled, all calls together."""
    longest: int
    """Tokens of the longest prompt with its reply."""
    shown: int = 0
    """Tokens of the pictures in the prompt that shows most."""
    seen: float = 0.0
    """Tokens of pictures that are read, all calls together."""


@dataclass(frozen=True)
class Workload:
    """The work of the models in one iteration of one seed."""

    episodes: float
    calls: tuple[Calls, ...]
    rows: dict[str, tuple[Rows, ...]]
    """Training rows by model."""
    undivided: dict[str, int]
    """Tokens of the longest row that cannot be divided, by model.

    For the reward model: one question with one reply.
    """

    @property
    def trained(self) -> dict[str, float]:
        """Tokens of training rows by model."""
        return {name: sum(row.count * row.tokens for row in rows) for name, rows in self.rows.items()}

    @property
    def shown(self) -> dict[str, float]:
        """Tokens of pictures in training rows by model."""
        return {name: sum(row.count * row.shown for row in rows) for name, rows in self.rows.items()}

    @property
    def longest_row(self) -> dict[str, int]:
        """Tokens of the longest row by model."""
        return {name: max(row.tokens for row in rows) for name, rows in self.rows.items()}


def workload(config: Config, arm_name: str, positions: dict[str, int], given: Assumptions) -> Workload:
    """The work of one iteration. `positions`: longest context of each model. Raises `ConfigError` for an unknown arm.

    For an arm that adapts this is an upper bound: every proposal is valid, and all attempts are needed.
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
            undivided["reward"] = asked.undivided
    if arm.adapt:
        calls += _adapting(config, len(prompts), positions["adapter"], given)
    return Workload(episodes, tuple(calls), rows, undivided)


def _episodes(config: Config, arm: ArmConfig, given: Assumptions) -> float:
    """Number of episodes: of the buffer's tasks, of proposals, and of the old tasks that are played beside them."""
    tasks = min(config.rollout.tasks * arm.max_batches, config.tasks.train)
    beside = proposal_tasks(config) * given.rewritten_share * arm.adapt
    return tasks * config.rollout.rollouts * (1 + beside)


def proposal_tasks(config: Config) -> int:
    """How many tasks are played for a proposal: itself, and with acceptance `paired` the task that it would replace."""
    return 2 if config.adaptation.acceptance == "paired" else 1


def _judged(config: Config, episodes: float) -> float:
    """Number of episodes that the reward model judges, or of tasks where it writes tests."""
    asked = config.rollout.max_steps * config.judge.m
    return kind_of(config).count_replies(config, round(episodes)) / asked


def _once(config: Config, model: str) -> bool:
    """Whether common beginnings are read once. An endpoint counts every prompt in full."""
    return config.engine[TARGET] in READ_ONCE and endpoint_of(config, model) is None


def acting(
    config: Config,
    episodes: float,
    prompts: Sequence[int],
    given: Assumptions,
    *,
    name: str = "act",
    model: str = "policy",
) -> Calls:
    """The calls of a policy's steps.

    In a conversation each prompt begins with the prompt and reply before; in a history not.
    """
    said, turns = reply(config.rollout.max_tokens, given), len(prompts)
    once = _once(config, model) and config.model.context == "chat"
    read = prompts[-1] - (turns - 1) * said if once else sum(prompts)
    written = episodes * turns * said
    shown = [shown_in_prompt(config, given, step) for step in range(turns)]
    return Calls(
        name,
        model,
        episodes * turns,
        episodes,
        episodes * read,
        written,
        prompts[-1] + said,
        max(shown),
        episodes * sum(shown),
    )


def judging(
    config: Config, judged: float, asked: Questions, *, name: str = "judge", model: str = "reward"
) -> Calls:
    """The calls of a reward model or judge for `judged` episodes or tasks, all in one batch."""
    count, once = judged * len(asked.prompts) * asked.replies, _once(config, model)
    read = judged * (asked.read if once else asked.replies * sum(asked.prompts))
    seen = asked.shown * (count / asked.replies if once else count)
    longest = asked.prompts[-1] + asked.reply
    return Calls(name, model, count, count, read, count * asked.reply, longest, asked.shown, seen)


def _adapting(config: Config, steps: int, positions: int, given: Assumptions) -> list[Calls]:
    """The calls of the critic for failed rollouts of the rewritten tasks, and of the adapter for these tasks.

    Upper bound: every rollout of these tasks fails, and all `attempts` are needed. With two critic stages every step is
    marked. An extractive critic is as long as the replies about one step, or as the tests of one task.
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
