"""An oracle with declared errors: how often it is wrong, which votes are wrong together, and what they depend on."""

from __future__ import annotations

import re
from dataclasses import replace
from json import JSONDecodeError
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlanything.config import JudgeSource
from rlanything.core.errors import EnvironmentFailure, UserError
from rlanything.core.printable import shown
from rlanything.core.types import Status, Step, Task, Trajectory
from rlanything.rewards.oracle import Errors
from rlanything.rewards.step_votes.labels import label
from rlanything.rewards.step_votes.oracle import OracleVotes
from rlanything.rewards.unit_tests.oracle import OracleTests

shares = st.floats(0, 1)
TASK = Task("game", "win", {})


def oracle(accuracy: float, systematic: float = 0.0) -> JudgeSource:
    return JudgeSource(source="oracle", accuracy=accuracy, systematic=systematic)


class Labels:
    """An oracle for which an action is good when it is `win`."""

    def label_steps(self, task: Task, actions: list[str]) -> list[bool]:
        return [action == "win" for action in actions]

    def explain(self, task: Task, actions: list[str]) -> list[str]:
        return [f"{action}, of course" for action in actions]


@pytest.mark.parametrize(
    ("method", "answer", "wanted"),
    [
        ("label_steps", [True], "a list with one bool for each"),
        ("label_steps", [1, 0], "a list with one bool for each"),
        ("label_steps", None, "a list with one bool for each"),
        ("explain", ["because"], "a list with one str for each"),
        ("explain", "ab", "a list with one str for each"),
    ],
)
def test_an_oracle_that_answers_something_else_than_one_label_and_reason_a_step_is_named(
    method, answer, wanted
):
    family = Labels()
    setattr(family, method, lambda task, actions: answer)
    said = re.escape(f"env: Labels.{method} gave {shown(answer)} for 2 actions; it must give {wanted}")
    tasks = {TASK.task_id: TASK}
    with pytest.raises(EnvironmentFailure, match=said):
        OracleVotes(family, oracle(1.0), 3).judge([episode("win", "lose")], 0, 0, tasks=tasks)
    if method == "label_steps":
        with pytest.raises(EnvironmentFailure, match=said):
            label(family, [TASK], [episode("win", "lose")])


@pytest.mark.parametrize("method", ["label_steps", "explain"])
@pytest.mark.parametrize("error", [KeyError("room"), SystemExit(3)])
def test_an_oracle_that_fails_is_named_with_the_task(method, error):
    def fails(task: Task, actions: list[str]) -> list[str]:
        raise error

    family = Labels()
    setattr(family, method, fails)
    kind, tasks = type(error).__name__, {TASK.task_id: TASK}
    said = rf"env: Labels\.{method} failed for task {TASK.task_id[:12]} \('win'\): {kind}: {error}$"
    with pytest.raises(EnvironmentFailure, match=said):
        OracleVotes(family, oracle(1.0), 3).judge([episode("win", "lose")], 0, 0, tasks=tasks)
    if method == "label_steps":
        with pytest.raises(EnvironmentFailure, match=said):
            label(family, [TASK], [episode("win", "lose")])


def test_a_reason_that_no_tokenizer_reads_is_named():
    family = Labels()
    family.explain = lambda task, actions: ["\ud83d" for _ in actions]
    with pytest.raises(EnvironmentFailure, match=r"env: Labels\.explain failed .*surrogates not allowed"):
        OracleVotes(family, oracle(1.0), 3).judge([episode("win")], 0, 0, tasks={TASK.task_id: TASK})


def episode(*actions: str, rollout: int = 0, first: str = "first", status: Status = Status.OK) -> Trajectory:
    steps = tuple(Step((1,), (2,), (-0.1,), ((),), a, True, f"{a} was done") for a in actions)
    return Trajectory(TASK.task_id, 0, rollout, 0, first, steps, 1, status)


def verdicts(
    judge: JudgeSource, trajectories: list[Trajectory], run_seed: int = 0, m: int = 3, iteration: int = 0
):
    found = OracleVotes(Labels(), judge, m).judge(
        trajectories, run_seed, iteration, tasks={TASK.task_id: TASK}
    )
    return [[[vote.verdict for vote in j.votes] for j in judgements] for judgements in found]


@given(shares, shares)
def test_a_vote_is_right_with_the_declared_probability_whatever_share_of_the_errors_is_systematic(q, s):
    errors = Errors(oracle(q, s), 0)
    wrong = errors.systematic + (1 - errors.systematic) * errors.independent
    assert wrong == pytest.approx(1 - q, abs=1e-12)
    assert errors.systematic == pytest.approx(s * (1 - q), abs=1e-12)
    assert 0 <= errors.independent <= 1


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([0.0, 0.5, 0.75, 0.85, 1.0]), st.sampled_from([0.0, 0.3, 0.7, 1.0]), st.integers(0, 99)
)
def test_the_drawn_votes_have_that_accuracy_and_that_share_of_systematic_errors(q, s, run_seed):
    """Counted over many questions; five standard errors of a share of independent questions."""
    errors, questions, m = Errors(oracle(q, s), run_seed), 4000, 3
    drawn = [errors.of((f"question {k}",), (k,), m) for k in range(questions)]
    margin = 5 * 0.5 / sqrt(questions)
    assert sum(map(sum, drawn)) / (questions * m) == pytest.approx(1 - q, abs=margin)
    independent = (1 - s * (1 - q)) * errors.independent**m
    assert sum(map(all, drawn)) / questions == pytest.approx(s * (1 - q) + independent, abs=margin)


def test_systematic_errors_are_those_of_the_question_and_independent_ones_those_of_the_vote():
    """An equal question (observation, action, next observation) has the same error in every episode and iteration."""
    first, again = episode("win", "lose", "win"), episode("win", "lose", "win", rollout=1)
    together, apart = oracle(0.5, 1.0), oracle(0.5, 0.0)
    seeds = range(40)
    for seed in seeds:
        (a, b), (later,) = (
            verdicts(together, [first, again], seed),
            verdicts(together, [first], seed, iteration=9),
        )
        assert a == b == later
        assert all(len(set(step)) == 1 for step in a)
    assert any(a != b for a, b in (verdicts(apart, [first, again], seed) for seed in seeds))
    other = [
        verdicts(together, [replace(first, first_observation="elsewhere")], seed)[0][0] for seed in seeds
    ]
    same = [verdicts(together, [first], seed)[0][0] for seed in seeds]
    assert other != same


def test_a_systematic_error_is_that_of_what_was_seen_before_what_was_done_and_what_was_seen_then():
    def wrong(trajectory: Trajectory, number: int = 0) -> list[bool]:
        good = trajectory.steps[number].action == "win"
        found = [verdicts(oracle(0.5, 1.0), [trajectory], seed)[0][number][0] for seed in range(40)]
        return [(verdict == 1) != good for verdict in found]

    first = episode("win", "lose")
    step, after = first.steps
    before = replace(first, first_observation="elsewhere")
    action = replace(first, steps=(replace(step, action="wait"), after))
    result = replace(first, steps=(replace(step, observation="nothing happened"), after))
    assert all(wrong(other) != wrong(first) for other in (before, action, result))
    assert wrong(before, 1) == wrong(action, 1) == wrong(first, 1) != wrong(result, 1)


def test_an_independent_error_is_that_of_one_vote_on_one_step_of_one_task_in_one_iteration():
    def drawn(task: Task = TASK, iteration: int = 0) -> list[list[list[int]]]:
        judged = replace(episode("win", "win"), task_id=task.task_id)
        made = [
            OracleVotes(Labels(), oracle(0.5), 3).judge([judged], seed, iteration, tasks={task.task_id: task})
            for seed in range(40)
        ]
        return [[[vote.verdict for vote in j.votes] for j in one] for (one,) in made]

    found = drawn()
    assert any(len(set(votes)) > 1 for steps in found for votes in steps)
    assert any(one != two for one, two in found)
    assert found != drawn(iteration=1)
    assert found != drawn(Task("game", "win again", {}))


class Writer:
    """A teacher whose tests say how they were drawn."""

    def demonstrate_test(self, task: Task, seed: int, noise: float) -> str:
        return f"{seed} {noise}"


class UnknownProblem(ValueError):
    """As an environment may name it."""


def written_where(monkeypatch, outcome: object) -> list[str]:
    """What the oracle writes where `demonstrate_test` raises or returns this."""

    def answer(*_: object) -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(Writer, "demonstrate_test", answer)
    return OracleTests(Writer(), oracle(1.0), 3)._write(TASK, Errors(oracle(1.0), 0), 0)


@pytest.mark.parametrize("error", [ValueError("unknown"), UnknownProblem("unknown")])
def test_a_task_that_the_writer_does_not_know_has_no_tests(error, monkeypatch):
    assert written_where(monkeypatch, error) == []


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (KeyError("chain"), "KeyError: 'chain'"),
        (JSONDecodeError("no value", "", 0), "JSONDecodeError: no value"),
        (
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
            "UnicodeDecodeError: .*invalid start byte",
        ),
        (None, r"TypeError: demonstrate_test\(task, seed, noise\) is None, of type NoneType; str is wanted"),
        ("\ud83d", "UnicodeEncodeError: .*surrogates not allowed"),
    ],
)
def test_a_writer_that_fails_or_writes_no_text_is_named(outcome, said, monkeypatch):
    with pytest.raises(EnvironmentFailure, match=rf"env: Writer\.demonstrate_test failed for .*: {said}"):
        written_where(monkeypatch, outcome)


@pytest.mark.parametrize("kind", [UserError, type("SandboxError", (EnvironmentFailure,), {})])
def test_a_writer_that_says_whose_fault_it_is_is_heard(kind, monkeypatch):
    with pytest.raises(kind, match=r"^no sandbox$"):
        written_where(monkeypatch, kind("no sandbox"))


@pytest.mark.parametrize("systematic", [0.0, 1.0])
def test_a_written_test_is_drawn_anew_and_a_systematic_error_is_that_of_its_task(systematic):
    def written(seed: int, iteration: int = 0) -> tuple[list[str], list[str]]:
        judge = oracle(0.5, systematic)
        tests = OracleTests(Writer(), judge, 3)._write(TASK, Errors(judge, seed), iteration)
        drawn, wrong = zip(*(test.split() for test in tests), strict=True)
        return list(drawn), list(wrong)

    found, later = ([written(seed, k) for seed in range(40)] for k in (0, 1))
    for (drawn, _), (again, _) in zip(found, later, strict=True):
        assert len({*drawn, *again}) == 6
    errors, others = ([wrong for _, wrong in some] for some in (found, later))
    assert {x for wrong in errors for x in wrong} == {"0.0", "1.0"}
    assert any(len(set(wrong)) > 1 for wrong in errors) == (systematic == 0.0)
    assert (errors == others) == (systematic == 1.0)


@given(shares, shares, st.integers(0, 1 << 40), st.permutations(range(4)))
def test_votes_do_not_depend_on_what_is_judged_beside_them(q, s, run_seed, order):
    trajectories = [episode("win", "lose", "lose", rollout=k) for k in range(4)]
    together = verdicts(oracle(q, s), trajectories, run_seed)
    shuffled = verdicts(oracle(q, s), [trajectories[k] for k in order], run_seed)
    assert [together[k] for k in order] == shuffled
    assert [verdicts(oracle(q, s), [t], run_seed)[0] for t in trajectories] == together


def test_a_perfect_oracle_says_what_the_environment_says_with_its_reasons_and_without_tokens():
    (judged,) = OracleVotes(Labels(), oracle(1.0), 2).judge(
        [episode("win", "lose")], 0, 0, tasks={TASK.task_id: TASK}
    )
    assert [[v.verdict for v in j.votes] for j in judged] == [[1, 1], [-1, -1]]
    assert [v.reasoning for j in judged for v in j.votes] == ["win, of course"] * 2 + ["lose, of course"] * 2
    assert all(not j.prompt_ids and not v.response_ids and not v.logprobs for j in judged for v in j.votes)


def test_an_oracle_that_is_never_right_says_the_opposite_and_gives_no_reason():
    (judged,) = OracleVotes(Labels(), oracle(0.0, 1.0), 1).judge(
        [episode("win", "lose")], 0, 0, tasks={TASK.task_id: TASK}
    )
    assert [(v.verdict, v.reasoning) for j in judged for v in j.votes] == [(-1, ""), (1, "")]


def test_a_crashed_episode_has_no_votes():
    assert verdicts(oracle(1.0), [episode("win", status=Status.ENV_ERROR)]) == [[]]
