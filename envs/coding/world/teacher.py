"""Demonstrations for the world: right and wrong programs and tests, harder and easier problems."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from envs.coding.problem import Case, Problem
from envs.coding.replies import UNCHANGED, read_tests, require_agreeing, write_test
from envs.coding.world.cases import NoTestsError, draw_case, first_failed, shortened
from envs.coding.world.chain import LONGEST, Chain, ChainError, Step, UndefinedError, parse
from envs.coding.world.operations import OPERATIONS
from envs.coding.world.sampling import LEVELS, Mixture, belongs, draw_step, problem_with_tests
from envs.splits import SPLITS
from rlanything.core.types import Direction, InvalidProposal

TRIES = 200
"""Changes tried for one rewrite or one wrong program."""
OPENING = "problem:"


def chain_of(problem: Problem) -> Chain:
    """The chain of a problem of this world. Raises `ChainError` for any other."""
    return Chain.from_json(problem.source.get("chain"))


def program(chain: Chain, rng: random.Random, noise: float) -> Chain:
    """The chain of the reference solution, or with probability `noise` that of a similar problem."""
    return confused(chain, rng) if rng.random() < noise else chain


def test_reply(chain: Chain, rng: random.Random, noise: float, aims: Sequence[Chain]) -> str:
    """A reply that derives a test step by step; with probability `noise` the steps are those of a wrong program.

    Easy inputs are tried first. Inputs on which all of `aims` fail come before all others. Raises `NoTestsError`.
    """
    wrong = rng.random() < noise
    for attempt in range(-TRIES if aims else 0, TRIES):
        case = draw_case(chain, rng, easy=attempt % TRIES < TRIES // 2)
        if case is None or (attempt < 0 and any(first_failed(aim, [case]) is None for aim in aims)):
            continue
        if not wrong:
            return _derived(chain, case.input)
        other = confused(chain, rng)
        if first_failed(other, [case]) is not None and _defined(other, case.input):
            return _derived(other, case.input)
    raise NoTestsError(f"no test for {chain.key!r}")


def rewrite(problem: Problem, direction: Direction, rng: random.Random, tests: int, mixture: Mixture) -> str:
    """A reply that `read_rewrite` accepts, with `tests` tests: one step more (harder) or less (easier).

    Where the split has no such problem, a step is replaced. Raises `ValueError` when that fails too.
    """
    chain = chain_of(problem)
    for attempt in range(TRIES):
        if attempt >= TRIES // 2:
            changed = rng.choice(list(_changes(chain, rng)))
        else:
            changed = _longer(chain, rng) if direction is Direction.HARDER else _shorter(chain, rng)
        if changed.key == chain.key or split_of(changed) != split_of(chain):
            continue
        try:
            found = problem_with_tests(changed, level_of(changed), mixture).cases
        except NoTestsError:
            continue
        return write_rewrite(changed, shortest(found, tests))
    raise InvalidProposal(f"no {direction} problem was found for {chain.key!r}")


def shortest(found: Sequence[Case], count: int) -> tuple[Case, ...]:
    """The `count` shortest tests."""
    return tuple(sorted(found, key=lambda case: len(case.input + case.output))[:count])


def write_rewrite(chain: Chain, shown: tuple[Case, ...]) -> str:
    """A problem with tests, as an adapter writes it."""
    return "\n".join([f"{OPENING} {chain.statement}", *(write_test(case) for case in shown)])


def read_rewrite(parent: Problem, reply: str, least: int, mixture: Mixture) -> Problem:
    """The problem that a reply asks for, with its tests and those that `mixture` gives. Raises `InvalidProposal`.

    The problem's reference solution must pass every test of the reply, and there must be at least `least` tests.
    The problem must differ from its parent in more than words and tests. It must belong to the parent's split, so that
    training never meets a problem of the evaluation.
    """
    _, found, text = reply.rpartition(OPENING)
    if not found:
        raise InvalidProposal(f"the reply has no line {OPENING!r}")
    lines = text.strip().split("\n")
    try:
        chain = parse(lines[0])
    except ChainError as error:
        raise InvalidProposal(str(error)) from None
    if chain.key == chain_of(parent).key:
        raise InvalidProposal(UNCHANGED)
    tests = tuple(read_tests(text))
    if len(tests) < least:
        raise InvalidProposal(f"{len(tests)} tests; at least {least} are needed")
    require_agreeing(tests)
    if (wrong := first_failed(chain, tests)) is not None:
        raise InvalidProposal(f"test {wrong} is not what the problem asks for")
    if split_of(chain) != split_of(chain_of(parent)):
        raise InvalidProposal("problems of this kind are kept for evaluation")
    return _with_tests(chain, tests, mixture)


def split_of(chain: Chain) -> str:
    """The split that a chain belongs to."""
    return next(split for split in SPLITS if belongs(chain, split))


def level_of(chain: Chain) -> str:
    """The level of a chain of so many steps, or the hardest one."""
    return next((name for name, steps in LEVELS.items() if steps >= len(chain.steps)), list(LEVELS)[-1])


def _with_tests(chain: Chain, tests: tuple[Case, ...], mixture: Mixture) -> Problem:
    """The problem with the reply's tests and those of a drawn problem: a rewrite hides as much as its parent."""
    try:
        made = problem_with_tests(chain, level_of(chain), mixture)
    except NoTestsError:
        raise InvalidProposal("no inputs show what every step of the problem does") from None
    given = {case.input for case in tests}
    return replace(made, cases=(*tests, *(case for case in made.cases if case.input not in given)))


def confused(chain: Chain, rng: random.Random) -> Chain:
    """A chain that differs by one change and has another program."""
    for _ in range(TRIES):  # some changes give the same program: the even numbers are the multiples of 2
        if changes := [change for change in _changes(chain, rng) if change.program != chain.program]:
            return rng.choice(changes)
    raise NoTestsError(f"nothing is easily confused with {chain.key!r}")


def _changes(chain: Chain, rng: random.Random) -> Iterator[Chain]:
    """Chains with one change: a step left out, another constant, or another operation in its place."""
    yield from shortened(chain)
    for k, step in enumerate(chain.steps):
        last = k == len(chain.steps) - 1
        fitting = [
            o
            for o in OPERATIONS.values()
            if o.takes is step.operation.takes and (last or o.gives is step.operation.gives)
        ]
        yield _replaced(
            chain, k, draw_step(rng.choice([o for o in fitting if o is not step.operation] or fitting), rng)
        )
        if step.operation.constants:
            yield _replaced(chain, k, draw_step(step.operation, rng))


def _replaced(chain: Chain, k: int, *steps: Step) -> Chain:
    return Chain(chain.reads, (*chain.steps[:k], *steps, *chain.steps[k + 1 :]))


def _derived(chain: Chain, stdin: str) -> str:
    """The input, each step with the value after it, then the test. A small model can do one step at a time."""
    read, *held = chain.trace(stdin)
    steps = [f"{step.label}: {value}" for step, value in zip(chain.steps, held, strict=True)]
    return "\n".join([read, *steps, write_test(Case(stdin, held[-1]))])


def _defined(chain: Chain, stdin: str) -> bool:
    try:
        chain.output(stdin)
    except UndefinedError:
        return False
    return True


def _longer(chain: Chain, rng: random.Random) -> Chain:
    """One step more, at any place where it fits; the same chain where it has the most steps."""
    if len(chain.steps) >= LONGEST:
        return chain
    place = rng.randint(0, len(chain.steps))
    held = chain.steps[place - 1].operation.gives if place else chain.reads
    end = place == len(chain.steps)
    used = {step.operation.name for step in chain.steps}
    choices = [
        o for o in OPERATIONS.values() if o.takes is held and (end or o.gives is held) and o.name not in used
    ]
    return Chain(
        chain.reads, (*chain.steps[:place], draw_step(rng.choice(choices), rng), *chain.steps[place:])
    )


def _shorter(chain: Chain, rng: random.Random) -> Chain:
    """One step less, and in half of the cases another change; the same chain where it has one step."""
    if len(chain.steps) == 1:
        return chain
    fitting = [c for c in shortened(chain) if len(c.steps) == len(chain.steps) - 1]
    found = rng.choice([*fitting, Chain(chain.reads, chain.steps[:-1])])
    return found if rng.random() < 0.5 else rng.choice(list(_changes(found, rng)))
