"""How the time of every parser of model output grows with the text: `python -m benchmarks.parsers`.

A model can write anything, so a parser that is slow on some texts can be made to hang a run. Each parser reads texts
of one unit repeated, after a beginning. For the texts that take it longest, the size is doubled, and the exponent of
the growth is printed: 1 is linear, 2 is quadratic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from envs.alfworld.family import AlfworldFamily
from envs.alfworld.tasks.proposal import _LONGEST as ALFWORLD_CHARACTERS
from envs.coding.family import CodingFamily
from envs.coding.problem import Problem
from envs.coding.programs import program_of, same_lines
from envs.coding.replies import LONGEST, read_problem, read_test
from envs.coding.sandbox.judge import same_text
from envs.coding.world.operations import INTRODUCTIONS, Kind
from envs.coding.world.teacher import OPENING
from rlanything.core.errors import ModelOutputError
from rlanything.core.thoughts import after_thought
from rlanything.loop.prompts import Prompts
from rlanything.loop.summaries import read_summary

CHARACTERS = 1 << 16
"""Of the longest texts. Parsers that read only the end of a text get no more than they read."""
DOUBLINGS = 3
SLOWEST = 3
"""Texts whose growth is measured."""
BEGINNINGS = (
    "", "<think>", "```", "**Test Input:**\n```", "**Test Input:**", "test: 1", "task", "task: pick object: mug",
    "\\boxed{1", "\\boxed{It. ", '{"question": "', f"{OPENING} ", f"{OPENING} {INTRODUCTIONS[Kind.NUMBER]} ",
)  # fmt: skip
UNITS = (
    "<think>", "</think>", "```", "```\n", "**Test Input:**", "**Test Input:**\n```", "**Test Input:**\n```a```",
    "test: 1 -> 2\n", "test: ", "->", "task", "task:", "task : ", "object:", ":", "*", "_", "\\boxed{", "\\boxed{ ",
    "}", "\\boxed{}", ". A", '. "', ".)",
    "good ", "{", '{"', '{"a": ', "{ ", "[", "[1,", '"', "\\", "a", "1", "1 ", ".", " ", "\n", "\t ", "-1\n", "é", "`",
)  # fmt: skip
ENOUGH_S = 0.5
"""A text that takes longer ends the search: there is no slower one to look for."""
Parser = Callable[[str], object]


@dataclass(frozen=True)
class Growth:
    """The exponent of a parser's time over the length of a text, and the seconds for the longest."""

    exponent: float
    seconds: float
    text: str
    """Beginning and unit."""


def parsers() -> dict[str, tuple[Parser, int]]:
    """Name -> (a parser of what models write, the most characters of a text that it reads)."""
    coding, alfworld, tokens = CodingFamily(), AlfworldFamily(), AlfworldFamily(edit="tokens")
    program, game = coding.make("train", 1, 0)[0], alfworld.make("train", 1, 0)[0]
    problem = Problem.from_task(program)
    prompts = [
        Prompts({}, action, verdict) for action, verdict in (("boxed_index", "boxed"), ("verbatim", "word"))
    ]
    boxed, worded = prompts
    return {
        "thoughts": (after_thought, CHARACTERS),
        "program": (lambda text: program_of(problem, text), CHARACTERS),
        "test": (lambda text: read_test(text, problem), LONGEST),
        "problem": (lambda text: read_problem(problem, text, 1), LONGEST),
        "coding rewrite": (lambda text: coding.parse(program, text), LONGEST),
        "type rewrite": (lambda text: tokens.parse(game, text), ALFWORLD_CHARACTERS),
        "summary": (lambda text: (read_summary(text), read_summary(f"\\boxed{{{text}}}")), CHARACTERS),
        "game rewrite": (lambda text: alfworld.parse(game, text), ALFWORLD_CHARACTERS),
        "boxed action": (lambda text: boxed.action(text, ["look", "go"]), CHARACTERS),
        "boxed verdict": (lambda text: (boxed.verdict(text), boxed.reasoning(text)), CHARACTERS),
        "word verdict": (lambda text: (worded.verdict(text), worded.reasoning(text)), CHARACTERS),
        "printed lines": (lambda text: same_lines(text, text + "x"), CHARACTERS),
        "printed words": (lambda text: same_text(text, text + "x"), CHARACTERS),
    }


def growth(parse: Parser, most: int) -> Growth:
    """The worst growth among the texts that take a parser longest. `most`: characters of the longest texts."""
    spent: dict[tuple[str, str], float] = {}
    for text in texts():
        spent[text] = seconds(parse, text, most)
        if spent[text] > ENOUGH_S:
            break
    slowest = sorted(spent, key=lambda text: -spent[text])[:SLOWEST]
    return max((_grown(parse, text, most) for text in slowest), key=lambda found: found.exponent)


def texts() -> Iterator[tuple[str, str]]:
    """Every beginning with every unit."""
    return ((beginning, unit) for beginning in BEGINNINGS for unit in UNITS)


def seconds(parse: Parser, text: tuple[str, str], size: int) -> float:
    """Seconds of CPU that a parser takes for one text of `size` characters."""
    beginning, unit = text
    whole = (beginning + unit * (size // len(unit)))[:size]
    begun = time.process_time()
    with suppress(ModelOutputError):
        parse(whole)
    return time.process_time() - begun


def _grown(parse: Parser, text: tuple[str, str], most: int) -> Growth:
    """The exponent between the longest text and the one that is 2^DOUBLINGS times shorter."""
    short, long = (min(seconds(parse, text, size) for _ in range(5)) for size in (most >> DOUBLINGS, most))
    exponent = math.log2(long / short) / DOUBLINGS if short > 0 else 0.0
    return Growth(exponent, long, "".join(text))


def main() -> None:
    """Print a line for each parser."""
    print(f"{'parser':<16}{'exponent':>9}{'ms':>9}  slowest text")
    for name, (parse, most) in parsers().items():
        found = growth(parse, most)
        print(f"{name:<16}{found.exponent:>9.2f}{1000 * found.seconds:>9.2f}  {found.text!r} ...")


if __name__ == "__main__":
    main()
