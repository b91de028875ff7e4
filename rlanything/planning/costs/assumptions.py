"""What a plan assumes where the configuration has no value. The default is the upper bound where there is one."""

from __future__ import annotations

from dataclasses import dataclass

from rlanything.core.errors import ConfigError

SHARES = ("episode_share", "reply_share", "rewritten_share")
LENGTHS = ("opening_tokens", "turn_tokens", "past_tokens", "guide_tokens")


@dataclass(frozen=True)
class Assumptions:
    """Lengths in tokens, and shares of upper bounds."""

    episode_share: float = 1.0
    """Length of an episode as a share of its limit of steps. 1: the upper bound."""
    reply_share: float = 1.0
    """Length of a reply as a share of its max_tokens. 1: the upper bound."""
    rewritten_share: float = 1.0
    """Share of an iteration's tasks that are rewritten. 1: the upper bound."""
    opening_tokens: int = 400
    """Tokens of the policy's instructions, the first observation and its commands."""
    turn_tokens: int = 100
    """Tokens of a later observation in a conversation, with its commands and the special tokens of the chat format."""
    past_tokens: int = 50
    """Tokens of an observation without commands, as it stands in a history and in the prompts of judge and critic."""
    guide_tokens: int = 350
    """Tokens of the instructions in the prompts of a critic, an adapter and (with histories) a judge."""
    picture_tokens: int = 0
    """Tokens of a picture, where `env.screen` declares pictures; 0: those of Qwen's models, one for 32 x 32 pixels."""
    action_tokens: int = 16
    """Tokens of a command in a history or in a judge's prompt."""
    summary_tokens: int = 60
    """Tokens of a critic's one or two sentences."""

    @property
    def upper(self) -> bool:
        """Whether they give an upper bound: no share is below 1."""
        return all(getattr(self, name) == 1 for name in SHARES)

    @property
    def bound(self) -> str:
        """What numbers that follow from them are, in headings."""
        return "at most" if self.upper else "expected"

    def check(self) -> None:
        """Raise `ConfigError` for a share or a length out of range."""
        for name in SHARES:
            if not 0 < (value := getattr(self, name)) <= 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: must be above 0 and at most 1")
        for name in LENGTHS:
            if not 0 < (count := getattr(self, name)) <= 1 << 20:
                raise ConfigError(f"--{name.replace('_', '-')} {count}: must be from 1 to {1 << 20}")
        if not 0 <= self.picture_tokens <= 1 << 20:
            raise ConfigError(f"--picture-tokens {self.picture_tokens}: must be from 0 to {1 << 20}")
