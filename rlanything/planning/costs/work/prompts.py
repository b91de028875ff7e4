"""Tokens of the prompts of one episode for each `model.context`, and of the training rows made from them.

The texts are those of `loop.contexts` and `rewards.step_votes.judge`; the rows are those of `learn.packing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlanything.config import Config
from rlanything.core.images.tokens import estimate
from rlanything.planning.costs.assumptions import Assumptions
from rlanything.rewards.kind import kind_of

UNSEEN = "tree"
"""The value of `env.observe` with which an agent gets no pictures."""


@dataclass(frozen=True)
class Rows:
    """Training rows of equal length.

    count: number of rows. tokens, targets, shown: of one row. Targets enter the loss; `shown` are of pictures.
    """

    count: float
    tokens: int
    targets: int
    shown: int = 0


@dataclass(frozen=True)
class Questions:
    """What the reward model is asked about one episode, or one task where it writes tests."""

    prompts: tuple[int, ...]
    """Tokens of each question, in the order of the steps; each is longer than the one before."""
    own: int
    """Tokens of each question that later questions do not share as a prefix."""
    replies: int
    """Number of replies to each question."""
    reply: int
    """Tokens of a reply."""
    shown: int = 0
    """Tokens of the pictures that each question shows."""

    @property
    def read(self) -> int:
        """Tokens of all questions, with common prefixes counted once."""
        return self.prompts[-1] + (len(self.prompts) - 1) * self.own

    def rows(self, count: float, most: int) -> list[Rows]:
        """The rows of `count` episodes, divided as in `learn.packing.reward_rows`. most: limit of tokens in a row.

        Every reply is taken to train.
        """
        asked = len(self.prompts)
        # A question that shows pictures has a row of its own.
        parts = [(k, k + 1) for k in range(asked)] if self.shown else [(0, asked)]
        return [
            Rows(count, tokens, targets, self.shown)
            for first, last in parts
            for tokens, targets in self._divided(first, last, self.replies, most)
        ]

    def _divided(self, first: int, last: int, replies: int, most: int) -> Iterator[tuple[int, int]]:
        """(tokens, targets) of the rows of the questions from `first` to before `last`, with `replies` to each.

        A row that is too long has half of the questions; of one question, half of its replies."""
        asked = last - first
        tokens = self.prompts[last - 1] + (asked - 1) * self.own + asked * replies * (self.reply - 1)
        if tokens <= most or asked * replies == 1:
            yield tokens, asked * replies * self.reply
        elif asked > 1:
            middle = first + asked // 2
            yield from self._divided(first, middle, replies, most)
            yield from self._divided(middle, last, replies, most)
        else:
            yield from self._divided(first, last, replies // 2, most)
            yield from self._divided(first, last, replies - replies // 2, most)

    @property
    def undivided(self) -> int:
        """Tokens of the longest row with one question and one reply."""
        return self.prompts[-1] + self.reply - 1


def episode_steps(max_steps: int, given: Assumptions) -> int:
    """Expected steps of an episode with the limit `max_steps`."""
    return max(1, round(max_steps * given.episode_share))


def reply(most: int, given: Assumptions) -> int:
    """Expected tokens of a reply with the limit `most`."""
    return max(1, round(most * given.reply_share))


def policy_prompts(config: Config, positions: int, given: Assumptions, max_steps: int) -> list[int]:
    """Tokens of each of the policy's prompts in an episode. It ends when the context of `positions` tokens is full."""
    if config.model.context == "chat":
        grown = reply(config.rollout.max_tokens, given) + given.turn_tokens
    else:
        grown = given.past_tokens + given.action_tokens
    prompts = [
        given.opening_tokens + step * grown + shown_in_prompt(config, given, step)
        for step in range(episode_steps(max_steps, given))
    ]
    return _fitting(prompts, positions - config.rollout.max_tokens)


def policy_rows(config: Config, prompts: Sequence[int], count: float, given: Assumptions) -> list[Rows]:
    """The training rows of `count` episodes: one row a conversation, or one row a step."""
    said = reply(config.rollout.max_tokens, given)
    if config.model.context == "chat":
        return [Rows(count, prompts[-1] + said, len(prompts) * said)]
    return [
        Rows(count, prompt + said, said, shown_in_prompt(config, given, step))
        for step, prompt in enumerate(prompts)
    ]


def questions(config: Config, acted: Sequence[int], positions: int, given: Assumptions) -> Questions:
    """The questions about an episode in which the policy read prompts of `acted` tokens."""
    said, seen = reply(config.rollout.max_tokens, given), 0
    if kind_of(config).replies.per_task:
        asked, own = [given.opening_tokens], 0
    elif config.model.context == "chat":
        grown = given.turn_tokens + given.action_tokens
        asked = [given.opening_tokens + step * grown for step in range(1, len(acted) + 1)]
        own = given.turn_tokens
    else:
        own = given.turn_tokens + said + given.action_tokens + given.guide_tokens
        around = given.guide_tokens + said + given.action_tokens + given.past_tokens
        # The policy's text, with pictures of its own: those before and after the step.
        seen = shown_in_question(config, given)
        own += seen
        asked = [
            prompt - shown_in_prompt(config, given, step) + seen + around for step, prompt in enumerate(acted)
        ]
    fitting = _fitting(asked, positions - config.judge.max_tokens)
    said = reply(config.judge.max_tokens, given)
    return Questions(tuple(fitting), own, config.judge.m, said, seen)


def _fitting(prompts: list[int], most: int) -> list[int]:
    """The prompts that leave enough context for a reply. The first prompt is always kept."""
    return [prompts[0], *(prompt for prompt in prompts[1:] if prompt <= most)]


def picture_tokens(config: Config, given: Assumptions) -> int:
    """Tokens of one picture. `env.screen` declares its width and height in pixels; 0 where there is none."""
    screen = config.env.get("screen")
    if not isinstance(screen, list) or len(screen) != 2 or config.env.get("observe") == UNSEEN:
        return 0
    return given.picture_tokens or estimate(*screen)


def shown_in_prompt(config: Config, given: Assumptions, step: int) -> int:
    """Tokens of the pictures in the policy's prompt of a step, from 0."""
    return min(step + 1, config.model.images.policy) * picture_tokens(config, given)


def shown_in_question(config: Config, given: Assumptions) -> int:
    """Tokens of the pictures in a question about a step."""
    return config.model.images.reward * picture_tokens(config, given)
