"""What an adapter may change of a task: the two types of its goal (the paper), or the scene as well (ours)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from envs.alfworld.games.game import Game
from envs.alfworld.tasks.proposal import describe_game
from envs.alfworld.tasks.rebuild import parse_proposal
from envs.alfworld.tasks.rewrite import rewrite_task
from envs.alfworld.tasks.tokens import describe_tokens, parse_tokens, rewrite_tokens
from rlanything.core.types import Direction, Task


@dataclass(frozen=True)
class Edit:
    """One way to change tasks: what the adapter reads, how its reply is read, and demonstrations of replies."""

    describe: Callable[[Game], str]
    parse: Callable[[Task, str], Task]
    rewrite: Callable[[Task, Direction, int], str]


EDITS = {
    "scene": Edit(describe_game, parse_proposal, rewrite_task),
    "tokens": Edit(describe_tokens, parse_tokens, rewrite_tokens),
}
"""By the value of `env.edit`."""
