"""Calls and tokens of one iteration, from the configuration and from assumptions that are stated.

What is not declared (how long episodes, replies and observations are) is assumed; by default at the upper bound where
there is one. Where a model re-reads a prompt, it is counted again, as the engine `transformers` does; the engine
`native` reads a conversation once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.planning.check import NATIVE
from rlanything.rewards.kind import kind_of
from rlanything.targets import TARGET

Reader = Literal["policy", "reward", "adapter"]


@dataclass(frozen=True)
class Assumptions:
    """What the configuration does not say."""

    episode_share: float = 1.0
    """Length of an episode as a share of rollout.max_steps. 1: the upper bound."""
    reply_share: float = 1.0
    """Length of a reply as a share of its max_tokens. 1: the upper bound."""
    opening_tokens: int = 400
    """Tokens of a conversation's instructions and first observation."""
    turn_tokens: int = 100
    """Tokens of every later observation, with the marks of the chat format."""
    action_tokens: int = 16
    """Tokens of a command as the judge reads it."""

    def check(self) -> None:
        """Raise `ConfigError` for a share or a length that cannot be."""
        for name in ("episode_share", "reply_share"):
            if not 0 < (value := getattr(self, name)) <= 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: must be above 0 and at most 1")
        for name in ("opening_tokens", "turn_tokens"):
            if not 0 < (count := getattr(self, name)) <= 1 << 20:
                raise ConfigError(f"--{name.replace('_', '-')} {count}: must be from 1 to {1 << 20}")


@dataclass(frozen=True)
class Calls:
    """The generations of one kind in an iteration."""

    name: str
    model: Reader
    count: float
    read: float
    """Tokens of prompts that are read, all calls together."""
    written: float
    """Tokens that are sampled, all calls together."""
    longest: int
    """Tokens of the longest conversation, prompt and reply."""


@dataclass(frozen=True)
class Workload:
    """What one iteration of one seed asks of the models."""

    episodes: float
    calls: tuple[Calls, ...]
    trained: dict[str, float]
    """Tokens of training rows by model."""
    longest_row: dict[str, int]
    """Tokens of the longest row by model."""
    targets: dict[str, float]
    """Share of a row's tokens that are targets of the loss, by model."""


def workload(config: Config, arm_name: str, positions: dict[str, int], given: Assumptions) -> Workload:
    """The work of one iteration. `positions`: longest context of each model. An upper bound for an arm that adapts."""
    arm, rollout = config.arm(arm_name), config.rollout
    steps = max(1.0, rollout.max_steps * given.episode_share)
    reply = max(1.0, rollout.max_tokens * given.reply_share)
    episodes = rollout.tasks * rollout.rollouts * (2 if arm.adapt else 1)
    once = config.engine[TARGET] == NATIVE
    acting = _conversation("act", "policy", episodes, steps, reply, given.turn_tokens, positions, given, once)
    calls, trained, rows = [acting], {}, {}
    row = min(positions["policy"], given.opening_tokens + steps * (reply + given.turn_tokens))
    trained["policy"], rows["policy"] = episodes * row, int(row)
    targets = {"policy": min(1.0, steps * reply / row)}
    if arm.step_votes or arm.train_reward:
        judged = _judging(config, episodes, steps, positions, given, once)
        calls.append(judged)
        if arm.train_reward:
            trunk = given.opening_tokens + steps * (given.turn_tokens + given.action_tokens)
            tree = trunk + steps * given.turn_tokens + judged.written / episodes
            trained["reward"], rows["reward"] = episodes * tree, int(tree)
            targets["reward"] = judged.written / (episodes * tree)
    if arm.adapt:
        calls += _adapting(config, steps, positions, given)
    return Workload(episodes, tuple(calls), trained, rows, targets)


def _conversation(
    name: str,
    model: Reader,
    conversations: float,
    turns: float,
    reply: float,
    between: float,
    positions: dict[str, int],
    given: Assumptions,
    once: bool,
) -> Calls:
    """Turns of growing conversations: each prompt is the one before with its reply and what came back."""
    last = min(positions[model], given.opening_tokens + (turns - 1) * (reply + between) + reply)
    anew = (given.opening_tokens + last - reply) / 2 * turns
    read = last - turns * reply if once else anew
    written = conversations * turns * reply
    return Calls(name, model, conversations * turns, conversations * max(read, 0.0), written, int(last))


def _judging(
    config: Config, episodes: float, steps: float, positions: dict[str, int], given: Assumptions, once: bool
) -> Calls:
    """The replies of the reward model; every question holds the conversation up to its step."""
    share = steps / config.rollout.max_steps
    count = kind_of(config).count_replies(config, int(episodes)) * share
    reply = max(1.0, config.judge.max_tokens * given.reply_share)
    grown = given.opening_tokens + steps * (given.turn_tokens + given.action_tokens)
    question = given.turn_tokens
    longest = min(positions["reward"], grown + question + reply)
    average = min(positions["reward"] - reply, (given.opening_tokens + grown) / 2 + question)
    anew = count * average
    shared = episodes * (grown + steps * question)
    return Calls("judge", "reward", count, min(anew, shared) if once else anew, count * reply, int(longest))


def _adapting(config: Config, steps: float, positions: dict[str, int], given: Assumptions) -> list[Calls]:
    """At most one critic and `attempts` replies for each task."""
    adaptation, tasks = config.adaptation, config.rollout.tasks
    reply = max(1.0, adaptation.max_tokens * given.reply_share)
    listing = min(positions["adapter"] - reply, given.opening_tokens + steps * given.turn_tokens)
    prompt = given.opening_tokens + reply
    result = []
    if adaptation.critic == "model":
        result.append(Calls("critic", "adapter", tasks, tasks * listing, tasks * reply, int(listing + reply)))
    tries = tasks * adaptation.attempts
    result.append(Calls("adapt", "adapter", tries, tries * prompt, tries * reply, int(prompt + reply)))
    return result
