"""The model critic: one summary per failed rollout, read strictly, cut in the open, stored with its seeds."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import World, chat_model, prompts, read, task

from rlanything.config import AdaptationConfig
from rlanything.core.types import Direction, EventKind
from rlanything.loop.critic import NOTHING_FAILED, TOO_LONG, Critic, CriticRecord
from rlanything.loop.reward_model import CriticInput, FailedRollout, FailedStep
from rlanything.loop.summaries import by_importance, read_summary, rollout_text

BOX = r"\boxed{it repeats itself}"


def failed(rollout: int = 0, count: int = 6, wrong: tuple[int, ...] = (1,)) -> FailedRollout:
    """A rollout of `count` steps."""
    steps = tuple(FailedStep(k, f"action: act {k}", k in wrong, f"- useless {k}") for k in range(count))
    return FailedRollout(rollout, "You are in a room.", steps, "The task is not done.")


class Asking:
    """A critic whose replies are scripted; `config`: of the adaptation."""

    def __init__(self, *replies: str, max_context: int = 10_000, **config: object) -> None:
        left = list(replies)
        self.chat_model = chat_model(lambda _: left.pop(0), max_context)
        settings = AdaptationConfig(**{"critic": "model", "max_tokens": 16, **config})
        self.critic = Critic(self.chat_model, prompts(), settings)

    def about(self, *failures: FailedRollout, of=None):
        (criticism,) = self.critic.criticise([of or task(5)], [CriticInput("extract", failures)], 1, 0)
        return criticism

    @property
    def asked(self) -> list[str]:
        return [read(request.prompt_ids) for request in self.chat_model.engine.asked]


@pytest.mark.parametrize(
    ("reply", "summary", "reason"),
    [
        (r"so \boxed{It never opens the drawer.}", "It never opens the drawer.", ""),
        (r"\boxed{first} then \boxed{second}", "second", ""),
        (r"\boxed{\text{It looks {twice} at step 3.}}", "It looks twice at step 3.", ""),
        (r"{ \boxed{a}", "a", ""),
        ("\\boxed{One\n  line. }", "One line.", ""),
        (r"\boxed{One. Two. Three. Four.}", "One. Two.", ""),
        (r"\boxed{It took mug 1. then left. It stopped.}", "It took mug 1. then left. It stopped.", ""),
        (r"\boxed{}", "", "the box is empty"),
        (r"\boxed{cut off", "", r"the reply has no closed \boxed{...}"),
        ("boxed{a}", "", r"the reply has no closed \boxed{...}"),
        ("It looped.", "", r"the reply has no closed \boxed{...}"),
        ("", "", r"the reply has no closed \boxed{...}"),
        (r"<think>\boxed{no}</think>\boxed{It looped.}", "It looped.", ""),
        (r"<think>perhaps \boxed{it looped}", "", r"the reply has no closed \boxed{...}"),
    ],
)
def test_the_last_closed_box_holds_the_summary_or_there_is_a_reason(reply, summary, reason):
    assert read_summary(reply) == (summary, reason)


@given(st.text(alphabet="\\boxed{} .aA\n\"'", max_size=80))
def test_any_text_gives_a_summary_of_one_line_or_a_reason(text):
    summary, reason = read_summary(text)
    assert bool(summary) != bool(reason)
    assert summary == " ".join(summary.split())


@given(st.integers(1, 12), st.sets(st.integers(0, 11)), st.integers(0, 12))
def test_a_short_context_keeps_marked_steps_then_the_newest_and_counts_the_others(count, wrong, kept):
    rollout = failed(3, count, tuple(wrong))
    order = by_importance(rollout)
    marks = [rollout.steps[place].wrong for place in order]
    assert marks == sorted(marks, reverse=True)
    text = rollout_text(rollout, order[:kept])
    shown = [int(n) for n in re.findall(r"^\[(\d+)(?:, wrong)?\] action", text, re.MULTILINE)]
    assert shown == sorted(order[:kept])
    assert sum(map(int, re.findall(r"\.\.\. (\d+) left out", text))) == count - len(shown)
    assert text.startswith("Rollout 3 begins.")
    assert "Rollout 3 ends." in text.splitlines()[-1]


def test_every_failed_rollout_is_summarised_alone_with_indexes_marks_and_boundaries():
    asking = Asking(BOX, r"\boxed{it is lost}")
    criticism = asking.about(failed(2, 2), failed(5, 2))
    assert criticism.text == "rollout 2: it repeats itself\nrollout 5: it is lost"
    assert asking.asked[0] == (
        "<user>reach level 5: Rollout 2 begins.\nYou are in a room.\n[0] action: act 0\n[1, wrong] action: act 1\n"
        "Rollout 2 ends. The task is not done.<assistant>"
    )
    assert [c.rollout for c in criticism.critiques] == [2, 5]
    assert len({c.seed for c in criticism.critiques}) == 2


def test_seeds_differ_by_task_and_iteration_and_not_by_company():
    alone = Asking(BOX).about(failed(2)).critiques[0].seed
    beside = Asking(BOX, BOX).about(failed(1), failed(2)).critiques[1].seed
    other = Asking(BOX).about(failed(2), of=task(6)).critiques[0].seed
    assert alone == beside != other


def test_a_reply_without_a_box_is_recorded_and_the_others_go_on():
    asking = Asking("I think it is lost.", BOX)
    criticism = asking.about(failed(0), failed(1))
    assert criticism.text == "rollout 1: it repeats itself\nno readable summary of 1 of 2 failed rollouts"
    unread = criticism.critiques[0]
    assert (unread.reply, unread.summary) == ("I think it is lost.", "")
    assert unread.reason == r"the reply has no closed \boxed{...}"


def test_without_any_readable_summary_the_text_says_so():
    assert (
        Asking("?", "?").about(failed(0), failed(1)).text == "no readable summary of 2 of 2 failed rollouts"
    )


def test_where_nothing_failed_nobody_is_asked_and_the_text_says_why():
    asking = Asking()
    assert asking.about().text == NOTHING_FAILED
    assert asking.asked == []


def test_a_rollout_that_is_too_long_is_cut_in_the_open():
    whole = Asking(BOX)
    whole.about(failed(0, 30, (3,)))
    room = len(whole.asked[0])
    asking = Asking(BOX, max_context=room - 100 + 16)
    (critique,) = asking.about(failed(0, 30, (3,))).critiques
    (text,) = asking.asked
    assert len(text) <= room - 100
    assert "[3, wrong] action: act 3" in text
    assert "[29] action: act 29" in text
    assert "[0] " not in text
    assert critique.left_out == sum(map(int, re.findall(r"\.\.\. (\d+) left out", text))) > 0
    more = Asking(BOX, max_context=room + 16)
    assert more.about(failed(0, 30, (3,))).critiques[0].left_out == 0


def test_a_rollout_of_which_no_step_fits_has_no_summary():
    asking = Asking(max_context=60)
    criticism = asking.about(failed())
    assert (criticism.critiques[0].reason, asking.asked) == (TOO_LONG, [])
    assert criticism.text == "no readable summary of 1 of 1 failed rollouts"


def test_two_stages_summarise_the_marked_steps_and_then_the_rollout():
    asking = Asking(r"\boxed{a detour}", "no box", r"\boxed{it wanders}", critic_stages=2)
    criticism = asking.about(failed(4, 5, (1, 3)))
    first, second, third = asking.asked
    assert first == "<user>reach level 5: action: act 1 because - useless 1<assistant>"
    assert "act 3 because - useless 3" in second
    assert "[1, wrong] a detour\n[3, wrong] action: act 3\nRollout 4 ends." in third
    assert criticism.text == "rollout 4: it wanders"
    assert [c.step for c in criticism.critiques] == [1, 3, None]
    assert len({c.seed for c in criticism.critiques}) == 3


def test_two_stages_take_the_whole_rollout_where_no_step_is_marked():
    asking = Asking(BOX, critic_stages=2)
    asking.about(failed(0, 2, ()))
    assert "[0] action: act 0\n[1] action: act 1" in asking.asked[0]


def test_the_extractive_critic_asks_no_model():
    asking = Asking(critic="extractive")
    criticism = asking.about(failed())
    assert (criticism.text, criticism.critiques, asking.asked) == ("extract", (), [])


def test_a_record_survives_json_and_is_read_again_from_its_replies():
    given_ = CriticInput("", (failed(0), failed(1)))
    (criticism,) = Asking(BOX, "?").critic.criticise([task(5)], [given_], 1, 0)
    record = CriticRecord(3, "t", criticism)
    again = CriticRecord.from_json(json.loads(json.dumps(record.to_json())))
    assert again == record
    assert again.criticism.read_again(given_) == criticism


def world(stages: int = 1, **changed: object) -> World:
    """A loop in which level 0 is never solved. The critic's replies have a box, the adapter's name a level."""

    def adapter(request):
        text = read(request.prompt_ids)
        return "level 7" if text.startswith("<user>now at") else r"\boxed{It loses at once.}"

    return World(
        {0: 0, 1: 2, 7: 2},
        votes=("bad", "bad", "bad"),
        adapter=adapter,
        adaptation={"critic": "model", "critic_stages": stages, "max_tokens": 64, **changed},
    )


@pytest.mark.parametrize(("stages", "samples"), [(1, 4), (2, 12)])
def test_an_iteration_asks_the_critic_shows_the_adapter_and_keeps_the_record(stages, samples):
    """Four rollouts of two steps, all called wrong: a summary each, and with two stages one of each step before."""
    w = world(stages)
    result = w.loop.collect(w.start(task(0), task(1)))
    (event,) = result.events
    listed = "\n".join(f"rollout {k}: It loses at once." for k in range(4))
    assert (event.kind, event.direction, event.critic) == (EventKind.PROPOSED, Direction.EASIER, listed)
    (record,) = result.critics
    assert (record.slot, record.task_id) == (0, task(0).task_id)
    assert len(record.criticism.critiques) == samples
    assert (result.metrics["critiques"], result.metrics["unreadable_critiques"]) == (samples, 0.0)
    assert listed in read(w.adapter.engine.asked[-1].prompt_ids)
    assert w.loop.collect(w.start(task(0), task(1))).critics == result.critics


def test_the_rule_any_marks_steps_that_one_vote_calls_wrong():
    def first_question(rule: str) -> str:
        w = world(marked=rule)
        w.reward.engine.script = lambda request: "bad" if request.seed % 2 else "good"
        w.loop.collect(w.start(task(0), task(1)))
        return "".join(read(r.prompt_ids) for r in w.adapter.engine.asked)

    assert first_question("any").count(", wrong]") > first_question("all").count(", wrong]")
