"""Adaptation: who is asked, what is accepted, and what a slot is never given again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from scripted import Family, chat_model, prompts, read, task

from rlanything.buffer import Event, TaskBuffer
from rlanything.config import AdaptationConfig
from rlanything.core.errors import MachineError
from rlanything.core.types import (
    Direction,
    Episode,
    EventKind,
    Judgement,
    Status,
    Step,
    Task,
    Trajectory,
    Vote,
)
from rlanything.loop.adapt import Adapter
from rlanything.loop.group import Group
from rlanything.rewards.step_votes.critic import critic_input, failed_rollout, marked_steps, summarise

HARDER, EASIER = Direction.HARDER, Direction.EASIER


def rule(acceptance: str = "strict", **changed: object) -> AdaptationConfig:
    return AdaptationConfig(**{"acceptance": acceptance, "critic": "extractive", "max_tokens": 16, **changed})


def vote(verdict: int | None, reasoning: str = "") -> Vote:
    return Vote(verdict, reasoning, (), ())


def episode(*votes: tuple[Vote, ...], unjudged: int = 0) -> Episode:
    count = len(votes) + unjudged
    steps = tuple(Step((), (), (), (), f"act {k}", True, f"saw {k}") for k in range(count))
    trajectory = Trajectory("t", 0, 2, 0, "a room", steps, -1, Status.TRUNCATED)
    return Episode(trajectory, tuple(Judgement((), v) for v in votes))


def judged(*votes: tuple[Vote, ...], rule: str = "all") -> list[tuple[str, str]]:
    return marked_steps(episode(*votes), rule)


def test_steps_are_marked_when_every_valid_vote_is_against_them():
    assert judged(
        (vote(-1, "useless"), vote(-1), vote(-1)),
        (vote(-1), vote(-1), vote(1)),
        (vote(-1, "again"), vote(None), vote(None)),
        (vote(None), vote(None), vote(None)),
    ) == [("act 0", "useless"), ("act 2", "again")]


def test_the_reason_of_a_marked_step_is_that_of_a_valid_vote():
    assert judged((vote(None, "gibberish"), vote(-1, "useless"))) == [("act 0", "useless")]


def test_the_rule_any_marks_a_step_that_one_vote_calls_wrong():
    votes = (vote(1), vote(None), vote(-1, "late")), (vote(1), vote(1)), (vote(None),)
    assert judged(*votes, rule="any") == [("act 0", "late")]


def test_a_failed_rollout_holds_every_step_with_its_index_and_the_reasons_against_it():
    found = failed_rollout(episode((vote(-1, "lost"), vote(-1)), (vote(1), vote(-1)), unjudged=1), "all")
    assert (found.rollout, found.opening) == (2, "a room")
    assert [s.text for s in found.steps] == [f"action: act {k}\nobservation: saw {k}" for k in range(3)]
    assert [(s.number, s.wrong, s.reasons) for s in found.steps] == [
        (0, True, "- lost\n- no reason"),
        (1, False, ""),
        (2, False, ""),
    ]
    assert found.ending == "The task is not done after 3 steps: the step limit is reached."


def test_an_error_of_closing_is_not_told_as_the_end_of_a_rollout():
    ended = episode((vote(1),))
    told = replace(ended, trajectory=replace(ended.trajectory, error="RuntimeError: broken close"))
    assert failed_rollout(told, "all").ending == failed_rollout(ended, "all").ending


def test_the_extractive_critic_names_the_most_frequent_reasons_with_counts():
    steps = [("a", "lost"), ("b", "slow"), ("c", "lost"), ("d", ""), ("e", "again"), ("f", "again")]
    assert summarise(steps) == "again x2; lost x2; no reason x1"
    assert summarise([]) == "nothing was criticised"


class Asking:
    """An adapter whose replies are scripted, and a buffer of two slots."""

    def __init__(self, *replies: str, **config: object) -> None:
        left = list(replies)
        self.chat_model = chat_model(lambda _: left.pop(0))
        self.adapter = Adapter(Family(), self.chat_model, prompts(), rule(**config), 60.0)
        self.buffer = TaskBuffer.start([task(5), task(6)])

    def propose(self, *wanted):
        return self.adapter.propose(wanted or [(0, HARDER, 1.0, "too easy")], self.buffer, 1, 3)


def add(asking: Asking, method: str, call: Callable[..., object]) -> None:
    """Give the family a method that its class may lack.

    Not the class: Python remembers that a class has a protocol's methods, also after they are gone.
    """
    setattr(asking.adapter.family, method, call)


def test_a_proposal_holds_the_new_task_and_how_it_came_about():
    asking = Asking("level 7")
    (proposal,) = asking.propose()
    assert proposal.task == task(7)
    assert (proposal.slot, proposal.direction, proposal.parent_id) == (0, HARDER, task(5).task_id)
    assert (proposal.reply, proposal.reason, proposal.iteration) == ("level 7", "", 3)
    assert proposal.prompt == "now at level 5, harder, 100%, too easy"
    assert len(asking.chat_model.engine.asked) == 1


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("make it a nice one", "the reply names no level"),
        ("level 7; level 8", "the reply names no level"),
        ("level 200", "there is no such level"),
        ("level 5", "the slot already had or refused this task"),
    ],
)
def test_an_invalid_reply_is_kept_with_its_reason(reply, reason):
    (proposal,) = Asking(reply, attempts=1).propose()
    assert (proposal.task, proposal.reply, proposal.reason) == (None, reply, reason)


def test_an_instruction_that_no_tokenizer_can_read_is_invalid(monkeypatch):
    monkeypatch.setattr(Family, "parse", lambda *_: replace(task(7), instruction="go \ud83d"))
    (proposal,) = Asking("level 7", attempts=1).propose()
    reason = "the instruction holds half a surrogate pair, which no model can read"
    assert (proposal.task, proposal.reason) == (None, reason)


def test_only_slots_without_a_valid_reply_are_asked_again_with_another_seed():
    asking = Asking("nonsense", "level 8", "level 9", attempts=2)
    first, second = asking.propose((0, HARDER, 1.0, ""), (1, EASIER, 0.0, ""))
    assert (first.task, second.task) == (task(9), task(8))
    engine = asking.chat_model.engine
    assert [len(b) for b in engine.batches] == [2, 1]
    assert len({r.seed for r in engine.asked}) == 3
    assert read(engine.asked[2].prompt_ids) == read(engine.asked[0].prompt_ids)


def test_the_reply_of_the_last_attempt_is_the_one_recorded():
    (proposal,) = Asking("nonsense", "level 200", attempts=2).propose()
    assert (proposal.reply, proposal.reason) == ("level 200", "there is no such level")


def test_a_rollout_that_failed_before_its_first_step_is_a_failed_one_for_the_critic():
    empty = Trajectory("t", 0, 3, 0, "a room", (), -1, Status.TRUNCATED, "the policy's context is full")
    crashed = replace(empty, rollout=4, status=Status.ENV_ERROR)
    found = critic_input(Group(0, task(1), (Episode(empty), Episode(crashed))), "all")
    assert [(f.rollout, f.steps) for f in found.failures] == [(3, ())]
    assert "after 0 steps: the policy's context is full" in found.failures[0].ending


def test_a_slot_does_not_get_a_former_task_in_other_words():
    """Otherwise a slot that goes back and forth between two games would count an accepted task every time."""

    class Knowing(Family):
        def parse(self, parent, reply):
            return replace(super().parse(parent, reply), instruction=f"{reply}, as you please")

        def exercise(self, task):
            return task.instruction.removesuffix(", as you please")

    asking = Asking("level 5", "level 7", attempts=1)
    asking.adapter.family = Knowing()
    asking.buffer = TaskBuffer.start([replace(task(5), instruction="level 5"), task(6)])
    (same,), (other,) = asking.propose(), asking.propose()
    assert (same.task, same.reason) == (None, "the slot already had this task in other words")
    assert other.task.instruction == "level 7, as you please"


@pytest.mark.parametrize("kind", [EventKind.PROPOSED, EventKind.REJECTED, EventKind.ACCEPTED])
def test_a_slot_never_gets_a_task_again_that_it_had_or_refused(kind):
    asking = Asking("level 7", "level 5", "level 7", attempts=1)
    (first,) = asking.propose()
    asking.buffer = asking.buffer.apply([Event.of(first, kind, 3, accuracy=0.5)])
    for reason in ["the slot already had or refused this task"] * 2:
        (again,) = asking.propose()
        assert (again.task, again.reason) == (None, reason)


def test_what_one_slot_refused_another_may_get():
    asking = Asking("level 7", "level 7", attempts=1)
    (first,) = asking.propose()
    asking.buffer = asking.buffer.apply([Event.of(first, EventKind.REJECTED, 3, accuracy=0.5)])
    assert asking.propose((1, HARDER, 1.0, ""))[0].task == task(7)


def test_no_two_slots_have_or_are_offered_the_same_task():
    asking = Asking("level 7", "level 7", "level 6", "level 1", attempts=1)
    first, second = asking.propose((0, HARDER, 1.0, ""), (1, EASIER, 0.0, ""))
    assert first.task == task(7)
    assert (second.task, second.reason) == (None, "slot 0 has this task, or is offered it now")
    (head,) = asking.propose((0, HARDER, 1.0, ""))
    assert (head.task, head.reason) == (None, "slot 1 has this task, or is offered it now")
    assert asking.propose((1, EASIER, 0.0, ""))[0].task == task(1)


def test_nobody_wanted_means_no_proposal():
    assert Asking().adapter.propose([], TaskBuffer.start([task(1)]), 1, 0) == []


def altered(method):
    """The method, in a family that changes the payloads that it is given."""

    def altering(family: Family, changed: Task, *further: object):
        answer = method(family, changed, *further)
        changed.payload["level"] = 90
        changed.payload.pop("parts")
        return answer

    return altering


def test_a_family_that_changes_what_it_is_given_changes_no_task_of_the_buffer(monkeypatch):
    asking = Asking("level 7")
    asking.buffer = TaskBuffer.start([task(5, parts=["one"]), task(6, parts=["one"])])
    for name in ("parse", "validate", "describe"):
        monkeypatch.setattr(Family, name, altered(getattr(Family, name)))
    add(asking, "exercise", altered(lambda _, task: task.task_id).__get__(asking.adapter.family))
    (proposal,) = asking.propose()
    assert proposal.task == task(7, parts=["one"])
    assert asking.buffer.head(0) == task(5, parts=["one"])
    assert Task.from_json(proposal.task.to_json()) == proposal.task


def test_a_proposed_task_shares_no_value_with_what_its_family_keeps(monkeypatch):
    kept = {"level": 7, "steps": 2}
    monkeypatch.setattr(Family, "parse", lambda *_: Task("levels", "reach level 7", kept))
    (proposal,) = Asking("level 7").propose()
    kept["level"] = 8
    assert proposal.task == task(7)


def test_a_task_that_json_would_give_back_as_another_one_is_invalid(monkeypatch):
    monkeypatch.setattr(Family, "parse", lambda *_: task(7, at=(1, 2)))
    (proposal,) = Asking("level 7", attempts=1).propose()
    assert proposal.task is None
    assert "payload['at'] is of type tuple" in proposal.reason


def raises(error: BaseException):
    def call(*_: object) -> None:
        raise error

    return call


METHODS = ["describe", "parse", "validate", "exercise"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("goal"), "KeyError: 'goal'"),
        (SystemExit(0), "SystemExit: 0"),
        (OSError("gone"), "OSError: gone"),
    ],
)
def test_an_environment_that_raises_refuses_the_rewrite_and_ends_nothing(method, error, said):
    asking = Asking("level 7", attempts=1)
    add(asking, method, raises(error))
    (proposal,) = asking.propose()
    assert (proposal.task, proposal.reason) == (None, f"the environment raised in `{method}`: {said}")


@pytest.mark.parametrize("method", METHODS)
def test_an_environment_that_hangs_refuses_the_rewrite_and_ends_nothing(method):
    asking = Asking("level 7", attempts=1)
    add(asking, method, lambda *_: time.sleep(30))
    asking.adapter.timeout_s = 0.05
    (proposal,) = asking.propose()
    said = f"the environment raised in `{method}`: TimeoutError: no answer within 0.05 s"
    assert (proposal.task, proposal.reason) == (None, said)


@pytest.mark.parametrize("method", METHODS)
def test_a_machine_that_fails_while_a_task_is_rewritten_ends_the_run(method):
    asking = Asking("level 7")
    add(asking, method, raises(MachineError("no sandbox")))
    with pytest.raises(MachineError, match="no sandbox"):
        asking.propose()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (7, "TypeError: describe(task) is 7, of type int; str is wanted"),
        ("level \ud83d", "UnicodeEncodeError: "),
    ],
)
def test_a_task_that_cannot_be_described_is_kept_and_the_other_slots_are_asked(facts, said, monkeypatch):
    describe = Family.describe
    monkeypatch.setattr(
        Family, "describe", lambda family, asked: facts if asked == task(5) else describe(family, asked)
    )
    asking = Asking("level 8", attempts=2)
    kept, other = asking.propose((0, HARDER, 1.0, "too easy"), (1, HARDER, 1.0, "too easy"))
    assert (kept.task, kept.prompt, kept.reply) == (None, "", "")
    assert kept.reason.startswith(f"the environment raised in `describe`: {said}")
    assert other.task == task(8)
    assert len(asking.chat_model.engine.asked) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "TypeError: parse(parent, reply) is None, of type NoneType; Task is wanted"),
        (Task("levels", None, {}), "its instruction is of type NoneType"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_task_is_refused(answer, said, monkeypatch):
    monkeypatch.setattr(Family, "parse", lambda *_: answer)
    (proposal,) = Asking("level 7", attempts=1).propose()
    assert proposal.task is None
    assert said in proposal.reason
