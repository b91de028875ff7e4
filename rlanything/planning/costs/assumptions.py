"""What a plan assumes where the configuration does not say it. By default an upper bound where there is one."""

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
    """Tasks of an iteration that are to be rewritten, as a share of them. 1: the upper bound."""
    opening_tokens: int = 400
    """Tokens of the policy's instructions, the first observation and its commands."""
    turn_tokens: int = 100
    """Tokens of every later observation in a conversation, with its commands and the marks of the chat format."""
    past_tokens: int = 50
    """Tokens of an observation without commands, as a history, a critic and a judge of histories read it."""
    guide_tokens: int = 350
    """Tokens of the instructions of a judge of histories, a critic and an adapter, without what they are shown."""
    action_tokens: int = 16
    """Tokens of a command in a history, or as the judge reads it."""
    summary_tokens: int = 60
    """Tokens of a critic's one or two sentences."""

    def check(self) -> None:
        """Raise `ConfigError` for a share or a length that cannot be."""
        for name in SHARES:
            if not 0 < (value := getattr(self, name)) <= 1:
                raise ConfigError(f"--{name.replace('_', '-')} {value}: must be above 0 and at most 1")
        for name in LENGTHS:
            if not 0 < (count := getattr(self, name)) <= 1 << 20:
                raise ConfigError(f"--{name.replace('_', '-')} {count}: must be from 1 to {1 << 20}")
