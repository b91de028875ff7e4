"""The errors of an oracle that takes the place of a reward model: which of its votes, or tests, are wrong.

q is the accuracy of a vote and s the share of the errors that are systematic. With e = 1 - q, a question has a
systematic error with probability s e: then all m votes on it are wrong, whenever it is asked in the run. On any other
question each vote is wrong independently, with probability (1 - s) e / (1 - s e). A vote is then wrong with probability

    s e + (1 - s e) (1 - s) e / (1 - s e) = s e + (1 - s) e = e,

whatever s is. Averaging over m votes reduces the independent errors, and never the systematic ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.config import JudgeSource
from rlanything.core.seeds import derive_seed

Part = int | str


@dataclass(frozen=True, slots=True)
class Errors:
    """Which votes of one run's oracle are wrong."""

    judge: JudgeSource
    run_seed: int

    @property
    def systematic(self) -> float:
        """Probability that all votes on a question are wrong: s e."""
        return self.judge.systematic * (1.0 - self.judge.accuracy)

    @property
    def independent(self) -> float:
        """Probability that a vote is wrong on a question without a systematic error; 0 where all have one."""
        rest = 1.0 - self.systematic
        return (1.0 - self.judge.systematic) * (1.0 - self.judge.accuracy) / rest if rest else 0.0

    def of(self, question: Sequence[Part], asked: Sequence[Part], m: int) -> list[bool]:
        """For each of m votes, whether it is wrong.

        Args:
            question: what is asked; equal questions have the same systematic error.
            asked: names this occasion uniquely within the run; each vote of each occasion has its own random draw.
            m: the number of votes on the question.
        """
        if _draw(self.run_seed, "oracle-systematic", *question) < self.systematic:
            return [True] * m
        return [_draw(self.run_seed, "oracle-vote", *asked, j) < self.independent for j in range(m)]


def _draw(run_seed: int, purpose: str, *parts: Part) -> float:
    """A uniform number in [0, 1) that depends only on the arguments."""
    return random.Random(derive_seed(run_seed, purpose, *parts)).random()
