"""The work that every side is given: a model in a folder, prompts, and a reward that costs nothing."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerBase
from transformers.models.qwen2 import Qwen2Tokenizer

from benchmarks.engines.measure import model_of
from rlanything.engines import checkpoint

VOCABULARY = 1024
"""Ids of `benchmarks.engines.measure.model_of`."""
CONTEXT = 4096
"""Positions of these models."""
WARMUP = 1
"""Iterations of each side that are not counted."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LR = 1e-6
EPSILON = 0.2
CLIP_NORM = 1.0


@dataclass(frozen=True)
class Work:
    """Sizes of an iteration; lengths are in tokens.

    prompt: of the shortest prompts; the longest have up to `spread` more. rows: in each pass of TRL's updates; a pass
    of ours has at most the tokens of so many rows of the greatest length. beta: weight of the KL term; above 0 both
    sides compare with a frozen copy of the first weights. recompute: ours computes the log-probs of the replies again,
    which TRL does where `updates` is above 1.
    """

    size: str = "0.4M"
    prompts: int = 16
    group: int = 8
    prompt: int = 200
    spread: int = 40
    reply: int = 32
    updates: int = 1
    rows: int = 32
    repeats: int = 3
    beta: float = 0.0
    recompute: bool = False

    @property
    def replies(self) -> int:
        """Replies of an iteration. Each is a row that trains once."""
        return self.prompts * self.group

    @property
    def iterations(self) -> int:
        """Iterations of a side, with those that are not counted."""
        return WARMUP + self.repeats

    @property
    def longest(self) -> int:
        """The most tokens of a row."""
        return self.prompt + self.spread + self.reply

    def problem(self) -> str:
        """Why the work cannot be done, with the option, its value and what is allowed; or ''."""
        for name in ("prompts", "prompt", "reply", "updates", "rows", "repeats"):
            if getattr(self, name) < 1:
                return f"--{name} {getattr(self, name)}: must be at least 1"
        if self.group < 2:
            return f"--group {self.group}: must be at least 2: advantages compare the replies to one prompt"
        for name in ("spread", "beta"):
            if getattr(self, name) < 0:
                return f"--{name} {getattr(self, name)}: must be at least 0"
        if self.longest > CONTEXT:
            return (
                f"--prompt {self.prompt} --spread {self.spread} --reply {self.reply}: rows of up to {self.longest} "
                f"tokens; at most {CONTEXT} are allowed"
            )
        step = self.updates * self.rows
        if self.replies % step:
            return (
                f"--rows {self.rows}: {self.replies} replies (--prompts times --group) must be a multiple of {step} "
                "(--updates times --rows); TRL takes no other"
            )
        return ""

    def texts(self, iteration: int) -> list[str]:
        """The prompts of an iteration, of random letters. Every letter is one token."""
        rng = random.Random(iteration)
        lengths = [self.prompt + rng.randrange(self.spread + 1) for _ in range(self.prompts)]
        return ["".join(rng.choices(LETTERS, k=length)) for length in lengths]


def write_model(size: str, folder: Path) -> None:
    """Write a random Qwen2 and its tokenizer as an ordinary Hugging Face folder.

    size: of `benchmarks.engines.measure.SIZES`.
    """
    checkpoint.save(model_of(size), tokenizer(), folder)


def tokenizer() -> PreTrainedTokenizerBase:
    """Reads every letter as one token. The model cannot sample its end of sequence, so every reply has full length."""
    letters = sorted(ByteLevel.alphabet())
    fillers = [chr(0x4E00 + index) for index in range(VOCABULARY - len(letters))]
    vocabulary = {text: index for index, text in enumerate([*letters, *fillers])}
    return Qwen2Tokenizer(
        vocab={**vocabulary, "<|endoftext|>": VOCABULARY},
        merges=[],
        pad_token=fillers[0],
        unk_token=fillers[0],
    )


def outcome(reply: Sequence[int]) -> int:
    """+1 or -1: the reward of a reply. It stands for an environment, and costs nothing."""
    return 1 if sum(reply) % 2 else -1
