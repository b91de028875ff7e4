"""Draws problems for a split. No problem is in two splits, and out of domain the compositions are new, too.

A fifth of all pairs of operations never stand side by side in `train` and `in_domain`; every problem of `out_of_domain`
and `reward_panel` has such a pair. A hash of the chain, equal for all its wordings, decides the split of a problem.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from envs.coding.problem import Case, Problem
from envs.coding.world.cases import NoTestsError, first_failed, problem_of
from envs.coding.world.chain import Chain, Step, constants
from envs.coding.world.habits import slips
from envs.coding.world.operations import OPERATIONS, Kind, Operation
from envs.splits import FAMILIAR, IN_DOMAIN, OUT_OF_DOMAIN, REWARD_PANEL
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task

LEVELS = {"easy": 1, "medium": 2, "hard": 3, "expert": 4}
"""Steps of a problem."""
HELD_OUT = 0.2
"""Share of the pairs of operations that training never shows side by side."""
PANEL = {
    TRAIN: (0.0, 0.8),
    IN_DOMAIN: (0.8, 1.0),
    OUT_OF_DOMAIN: (0.0, 0.5),
    REWARD_PANEL: (0.5, 1.0),
}
"""The range of hashes of a split, within the near or within the far problems."""
TRIES = 400
"""Draws for one task before the next level is tried."""


@dataclass(frozen=True)
class Mixture:
    """What the tasks of a split are drawn from."""

    kinds: Mapping[str, float]
    levels: Mapping[str, float]
    tests: int
    detected: Mapping[str, float] = field(default_factory=dict)
    """Habits (`habits.HABITS`) that further tests detect where they can."""
    shown: int | None = None
    """How many of the tests a problem has in the end, the plainest ones; None: all."""


def draw_tasks(split: str, count: int, seed: int, mixture: Mixture) -> list[Task]:
    """`count` distinct tasks; the same for the same arguments.

    There are fewer than 200 problems of one step. Where a level has no more, problems of the next one are drawn.
    Raises `ValueError` when the hardest has none either.
    """
    tasks: dict[str, Task] = {}
    exhausted: set[str] = set()
    for index in range(count):
        rng = random.Random(derive_seed(seed, "coding/task", split, index))
        level = rng.choices(list(mixture.levels), list(mixture.levels.values()))[0]
        for name in list(LEVELS)[list(LEVELS).index(level) :]:
            problem = None if name in exhausted else _fresh(split, name, mixture, tasks, rng)
            if problem is not None:
                tasks[problem.statement] = problem.to_task({"split": split, "level": name})
                break
            exhausted.add(name)
        else:
            raise ValueError(f"split {split} has no more than {len(tasks)} problems")
    return list(tasks.values())


def belongs(chain: Chain, split: str) -> bool:
    """Whether a chain is a problem of the split."""
    unseen = any(held_out(*pair) for pair in chain.pairs)
    low, high = PANEL[split]
    return unseen == (split not in FAMILIAR) and low <= _share(chain.key) < high


def held_out(before: str, after: str) -> bool:
    """Whether training never shows these operations side by side."""
    return _share(f"{before} > {after}") < HELD_OUT


def draw_chain(reads: Kind, length: int, rng: random.Random) -> Chain:
    """A random chain of `length` steps without a repeated operation."""
    held, steps = reads, list[Step]()
    while len(steps) < length:
        used = {step.operation.name for step in steps}
        choices = [o for o in OPERATIONS.values() if o.takes is held and o.name not in used]
        steps.append(draw_step(rng.choice(choices), rng))
        held = steps[-1].operation.gives
    return Chain(reads, tuple(steps))


def draw_step(operation: Operation, rng: random.Random) -> Step:
    """The operation with a random constant and wording."""
    return Step(operation, rng.choice(constants(operation)), rng.randrange(len(operation.say)))


def _fresh(
    split: str, level: str, mixture: Mixture, taken: Mapping[str, Task], rng: random.Random
) -> Problem | None:
    """A problem of the level with a new statement; None when none is found."""
    for _ in range(TRIES):
        kind = Kind(rng.choices(list(mixture.kinds), list(mixture.kinds.values()))[0])
        chain = draw_chain(kind, LEVELS[level], rng)
        if chain.statement in taken or not belongs(chain, split):
            continue
        try:
            return problem_with_tests(chain, level, mixture)
        except NoTestsError:
            continue
    return None


def problem_with_tests(chain: Chain, level: str, mixture: Mixture) -> Problem:
    """The chain as a problem with the tests of the mixture. Raises `NoTestsError`."""
    careless = slips(chain, mixture.detected)
    problem = problem_of(chain, mixture.tests, level, careless)
    return problem if mixture.shown is None else plainest(problem, mixture.shown, careless)


def plainest(problem: Problem, count: int, others: Sequence[Chain]) -> Problem:
    """The problem with `count` of its tests: those that detect the fewest of the other chains."""

    def detected(case: Case) -> int:
        return sum(first_failed(other, [case]) is not None for other in others)

    return replace(problem, cases=tuple(sorted(problem.cases, key=detected)[:count]))


def _share(text: str) -> float:
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") / 2**64
