"""The world: every operation in the real interpreter, sentences and chains, splits that share nothing."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.coding.family import CodingFamily
from envs.coding.problem import Case, Problem, ProblemError
from envs.coding.program_judge import ProgramJudge
from envs.coding.sandbox import Status
from envs.coding.world.cases import (
    NoTestsError,
    cases,
    draw_case,
    first_failed,
    problem_of,
    shortened,
    unfinished,
)
from envs.coding.world.chain import Chain, ChainError, Step, UndefinedError, constants, parse
from envs.coding.world.operations import OPERATIONS, Kind
from envs.coding.world.sampling import LEVELS, belongs, draw_chain, held_out
from envs.coding.world.teacher import confused
from envs.splits import SPLITS
from rlanything.core.types import Task


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    rng = random.Random(draw(st.integers(0, 2**32)))
    return draw_chain(draw(st.sampled_from(list(Kind))), draw(st.integers(1, 5)), rng)


def test_every_operation_prints_what_the_world_says(family: CodingFamily) -> None:
    """All operations, all kinds of input: the programs in the real sandbox against the world's own results."""
    rng, work = random.Random(0), []
    for operation in OPERATIONS.values():
        for k in {constants(operation)[0], constants(operation)[-1]}:
            chain = Chain(operation.takes, (Step(operation, k),))
            drawn = [case for case in (draw_case(chain, rng) for _ in range(6)) if case is not None]
            assert drawn, operation.name
            work.append((Problem(chain.statement, tuple(drawn)), chain.program, drawn))
    verdicts = ProgramJudge(family.sandbox).judge(work)
    failed = [item[0].statement for item, v in zip(work, verdicts, strict=True) if v.status is not Status.OK]
    assert failed == []
    assert len(work) >= len(OPERATIONS)


def test_reference_solutions_pass_in_every_split(family: CodingFamily, tasks: list[Task]) -> None:
    problems = [Problem.from_task(task) for task in tasks]
    verdicts = ProgramJudge(family.sandbox).judge([(p, p.solution, p.cases) for p in problems])
    assert {verdict.status for verdict in verdicts} == {Status.OK}


@settings(max_examples=200)
@given(chain=chains())
def test_sentences_and_json_give_the_chain_back(chain: Chain) -> None:
    assert parse(chain.statement) == chain
    assert parse("  ".join(chain.statement.split()) + "\n") == chain
    assert Chain.from_json(chain.to_json()) == chain


@settings(max_examples=100, deadline=None)
@given(chain=chains())
def test_tests_are_right_different_and_show_every_step(chain: Chain) -> None:
    try:
        found = cases(chain, 6)
    except NoTestsError:
        return
    assert found == cases(chain, 6)
    assert len({case.input for case in found}) == 6
    assert first_failed(chain, found) is None
    assert all(first_failed(other, found) is not None for other in (*shortened(chain), *unfinished(chain)))


def test_tests_show_a_last_step_that_makes_another_kind_of_value() -> None:
    """A list of one digit is printed as the number is; so is a row of stars that is counted again."""
    largest, digits = Step(OPERATIONS["largest"]), Step(OPERATIONS["digits"])
    found = cases(Chain(Kind.NUMBERS, (largest, digits)), 6)
    assert first_failed(Chain(Kind.NUMBERS, (largest,)), found) is not None
    for steps in (("remainder", 5), ("digits", 0)), (("stars", 0), ("word lengths", 0)):
        chain = Chain(Kind.NUMBER, (Step(OPERATIONS["add"], 2), *(Step(OPERATIONS[n], k) for n, k in steps)))
        with pytest.raises(NoTestsError):
            cases(chain, 6)


def test_wordings_say_different_things() -> None:
    """No sentence of a kind can be read as two steps."""
    for kind in Kind:
        said = Counter(
            Step(o, k, w).sentence
            for o in OPERATIONS.values()
            if o.takes is kind
            for k in constants(o)
            for w in range(len(o.say))
        )
        assert max(said.values()) == 1, said.most_common(1)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("", "a problem begins with"),
        ("Read a number. Square it.", "ends with Print the result."),
        ("Read a number. Print the result.", "0 steps"),
        ("Read a number. Sing. Print the result.", "'Sing.' asks for nothing that can be done with number"),
        ("Read a number. Sort them. Print the result.", "'Sort them.' asks for nothing"),
        ("Read a number. Add 99. Print the result.", "'Add 99.'"),
        ("Read a number. Add 03. Print the result.", "'Add 03.'"),
        ("Read a number. If above 3, make it 4. Print the result.", "asks for nothing"),
        ("Read a number. " + "Square it. " * 50 + "Print the result.", "7 steps"),
    ],
)
def test_what_is_not_understood_is_quoted(statement: str, said: str) -> None:
    with pytest.raises(ChainError, match=said):
        parse(statement)


@given(
    text=st.text(max_size=60)
    | st.lists(st.sampled_from(["Read", "a", "number.", "Add", "3.", "{k}"])).map(" ".join)
)
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        parse(f"Read a number. {text} Print the result.")
    except ChainError:
        return


@given(stdin=st.text(max_size=40))
def test_no_input_raises_anything_else(stdin: str) -> None:
    for kind, name in ((Kind.NUMBER, "count up"), (Kind.NUMBERS, "largest"), (Kind.TEXT, "last word")):
        try:
            assert Chain(kind, (Step(OPERATIONS[name]),)).output(stdin).strip()
        except UndefinedError:
            continue


@pytest.mark.parametrize("end", ["\r", "\n", "\x85", "\u2028", "\0"])
def test_what_a_program_would_read_as_more_lines_is_no_input(end: str) -> None:
    with pytest.raises(UndefinedError, match="more than a line"):
        Chain(Kind.TEXT, (Step(OPERATIONS["last word"]),)).output(f"red{end}oak")


def test_an_input_may_end_with_empty_lines_and_not_begin_with_one() -> None:
    for kind, name in ((Kind.NUMBER, "negate"), (Kind.NUMBERS, "largest"), (Kind.TEXT, "length")):
        chain = Chain(kind, (Step(OPERATIONS[name]),))
        assert chain.output("7\n\n") == chain.output("7")
        with pytest.raises(UndefinedError, match="more than a line"):
            chain.output("\n7")


def test_kinds_must_fit() -> None:
    with pytest.raises(ChainError, match="needs numbers, and there is text"):
        Chain(Kind.TEXT, (Step(OPERATIONS["sum"]),))


@pytest.mark.parametrize("split", SPLITS)
def test_make_is_deterministic_distinct_and_valid(split: str) -> None:
    made = CodingFamily()
    first, again, other = made.make(split, 30, 5), made.make(split, 30, 5), made.make(split, 30, 6)
    assert first == again
    assert len({task.task_id for task in first}) == 30
    assert first != other
    assert [made.validate(task) for task in first] == [""] * 30


def test_splits_share_no_problem_and_far_ones_are_unseen_compositions() -> None:
    made = CodingFamily()
    keys = {
        split: {Chain.from_json(t.payload["source"]["chain"]).key for t in made.make(split, 120, seed)}
        for seed, split in enumerate(SPLITS)
    }
    for a in SPLITS:
        for b in SPLITS:
            assert a == b or not keys[a] & keys[b]
    pairs = {
        split: [Chain.from_json(t.payload["source"]["chain"]).pairs for t in made.make(split, 120, 0)]
        for split in SPLITS
    }
    for split in ("train", "in_domain"):
        assert not any(held_out(*pair) for found in pairs[split] for pair in found)
    for split in ("out_of_domain", "reward_panel"):
        assert all(any(held_out(*pair) for pair in found) for found in pairs[split])
    trained = {name for found in pairs["train"] for pair in found for name in pair}
    assert len(trained) > 50


@settings(max_examples=100)
@given(chain=chains())
def test_a_chain_belongs_to_one_split_however_it_is_worded(chain: Chain) -> None:
    assert sum(belongs(chain, split) for split in SPLITS) == 1
    other = Chain(chain.reads, tuple(Step(s.operation, s.k, 1 - s.wording) for s in chain.steps))
    assert [belongs(other, s) for s in SPLITS] == [belongs(chain, s) for s in SPLITS]


def test_levels_are_steps_and_the_mixture_is_kept() -> None:
    made = CodingFamily(levels={"easy": 1, "hard": 3}, kinds=["text"]).make("train", 60, 0)
    levels = Counter(task.metadata["level"] for task in made)
    assert set(levels) == {"easy", "hard"}
    assert levels["hard"] > levels["easy"]
    for task in made:
        assert len(task.payload["source"]["chain"]["steps"]) == LEVELS[task.metadata["level"]]
        assert task.payload["source"]["chain"]["reads"] == "text"


def test_where_a_level_has_no_more_problems_the_next_one_gives_them() -> None:
    made = CodingFamily(levels=["easy"], kinds=["number"]).make("train", 250, 0)
    levels = Counter(task.metadata["level"] for task in made)
    assert levels["easy"] > 80
    assert levels["medium"] == 250 - levels["easy"]


def test_problems_and_programs_are_short(tasks: list[Task]) -> None:
    """Words and punctuation, at least as many as a tokenizer of phrases needs."""
    for task in tasks:
        assert len(task.instruction.split()) < 60
        assert len(task.payload["solution"].split()) < 60


def test_validate_says_what_is_wrong(tasks: list[Task]) -> None:
    made, task = CodingFamily(), tasks[0]
    assert "is missing or unknown" in made.validate(Task("coding", task.instruction, {}))
    assert "'alfworld' is not 'coding'" in made.validate(Task("alfworld", task.instruction, task.payload))
    assert "sentences" in made.validate(Task("coding", "Do something else.", task.payload))
    assert "sentences" in made.validate(_with(task, solution="print(1)"))
    assert "test 1 is not what" in made.validate(_with(task, cases=[["1", "no"]]))
    assert "at least one test" in made.validate(_with(task, cases=[]))
    assert "not a pair" in made.validate(_with(task, cases=[["1", 2]]))
    assert "reads" in made.validate(
        _with(task, source={"format": "world", "chain": {"reads": 1, "steps": []}})
    )
    assert "object of reads" in made.validate(_with(task, source={"format": "world"}))
    assert "JSON" in made.validate(_with(task, source={"format": "file", "x": float("nan")}))
    for time_s in (0, 1e9, 10**400, float("inf"), float("nan")):
        assert "is not above 0" in made.validate(_with(task, time_s=time_s))
    assert made.validate(_with(task, time_s="2")).startswith("time_s: str is not float")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_validate_never_raises(data: st.DataObject, tasks: list[Task]) -> None:
    task = tasks[data.draw(st.integers(0, len(tasks) - 1))]
    changes = data.draw(st.dictionaries(st.sampled_from([*task.payload, "other"]), json_values, max_size=3))
    assert isinstance(CodingFamily().validate(_with(task, **changes)), str)


def test_a_problem_needs_what_a_problem_needs() -> None:
    with pytest.raises(ProblemError, match="statement"):
        Problem(" ", (Case("", "1"),))
    with pytest.raises(ProblemError, match="does not go with function 'f'"):
        Problem("x", (Case("1", "1"),), function="f")
    with pytest.raises(NoTestsError):
        problem_of(Chain(Kind.NUMBER, (Step(OPERATIONS["negate"]), Step(OPERATIONS["absolute"]))), 6)


def _with(task: Task, **changes: object) -> Task:
    return Task(task.env, task.instruction, {**task.payload, **changes})


def test_what_is_confused_with_a_chain_is_another_program_even_where_two_operations_are_one() -> None:
    chain = parse("Read a list of numbers. Keep the even ones. Print the result.")
    others = [confused(chain, random.Random(seed)) for seed in range(400)]
    assert chain.program not in {other.program for other in others}
    assert len({other.program for other in others}) > 20
