"""Acting: crashes, hangs and limits end one episode and no other; batching changes nothing."""

from __future__ import annotations

import signal
import time
import unicodedata
from contextlib import suppress
from functools import partial

import pytest
from scripted import ACTIONS, Chat, Levels, prompts, read, rollout_worker, task

from rlanything.core.errors import MachineError
from rlanything.core.types import Observation, Status, StepResult
from rlanything.loop import episodes
from rlanything.loop.episodes import deadline
from rlanything.loop.rollout import NO_ACTIONS, Assignment, Sampling

SAMPLING = Sampling(run_seed=3, phase="act", iteration=0, temperature=0.8, max_steps=4)


def by_seed(request):
    return ACTIONS[request.seed % 2]


def always_win(_request):
    return "win"


def run(acting, *assignments, sampling=SAMPLING):
    return acting.roll_out(list(assignments), sampling)


def test_an_episode_records_what_was_read_said_and_seen():
    (trajectory,) = run(rollout_worker(always_win), Assignment(5, task(1), 1))
    assert (trajectory.slot, trajectory.rollout, trajectory.task_id) == (5, 0, task(1).task_id)
    assert (trajectory.status, trajectory.outcome, trajectory.counts) == (Status.OK, 1, True)
    assert trajectory.first_observation.startswith("reach level 1")
    assert [s.action for s in trajectory.steps] == ["win", "win"]
    assert [s.observation for s in trajectory.steps] == ["win was done"] * 2
    assert all(len(s.logprobs) == len(s.response_ids) == len(s.allowed) == 4 for s in trajectory.steps)


def test_each_prompt_begins_with_the_turn_before_token_for_token():
    (trajectory,) = run(rollout_worker(always_win), Assignment(0, task(1), 1))
    first, second = trajectory.steps
    before = first.prompt_ids + first.response_ids
    assert second.prompt_ids[: len(before)] == before
    assert "win was done" in read(second.prompt_ids[len(before) :])


def test_an_episode_that_ends_without_success_is_a_failure():
    (trajectory,) = run(rollout_worker(lambda _: "lose"), Assignment(0, task(1), 1))
    assert (trajectory.status, trajectory.outcome) == (Status.OK, -1)


@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_raises_ends_its_own_episode_only(where):
    acting = rollout_worker(always_win)
    broken, whole = run(
        acting, Assignment(0, task(1, fault=f"raise in {where}"), 1), Assignment(1, task(2), 1)
    )
    assert (broken.status, broken.counts, broken.steps) == (Status.ENV_ERROR, False, ())
    assert broken.error == f"RuntimeError: broken {where}"
    assert (whole.status, whole.outcome) == (Status.OK, 1)
    assert acting.family.closed == 2


@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_hangs_is_cut_off_at_the_deadline(where):
    acting = rollout_worker(always_win, timeout_s=0.5)
    began = time.monotonic()
    hung, whole = run(acting, Assignment(0, task(1, fault=f"hang in {where}"), 1), Assignment(1, task(2), 1))
    assert time.monotonic() - began < 20, "it would hang for 30 s"
    assert (hung.status, hung.counts) == (Status.TIMEOUT, False)
    assert "0.5 s" in hung.error
    assert whole.status is Status.OK


def test_an_environment_that_tries_again_whatever_is_raised_is_cut_off_all_the_same(monkeypatch):
    """A loop around a connection takes a `TimeoutError`, which is an `OSError`, for its own."""

    def stubborn(self, where):
        for _ in range(200 if where == "step" else 0):
            with suppress(OSError, RuntimeError):
                time.sleep(0.05)

    monkeypatch.setattr(Levels, "_fault", stubborn)
    began = time.monotonic()
    (trajectory,) = run(rollout_worker(always_win, timeout_s=0.1), Assignment(0, task(1), 1))
    assert time.monotonic() - began < 5
    assert trajectory.status is Status.TIMEOUT


def deaf() -> None:
    with suppress(BaseException):
        time.sleep(5)
    time.sleep(5)


def test_a_block_that_takes_every_exception_is_told_again(monkeypatch):
    monkeypatch.setattr(episodes, "AGAIN_S", 0.05)
    with pytest.raises(TimeoutError), deadline(0.05):
        deaf()


def test_a_timeout_that_says_nothing_is_one_all_the_same(monkeypatch):
    def silent(self, where):
        if where == "step":
            raise TimeoutError

    monkeypatch.setattr(Levels, "_fault", silent)
    acting = rollout_worker(always_win)
    (trajectory,) = run(acting, Assignment(0, task(1), 1))
    assert (trajectory.status, trajectory.error) == (Status.TIMEOUT, "no answer in time")
    assert acting.family.closed == 1


def test_the_deadline_leaves_neither_alarm_nor_handler_behind():
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(TimeoutError), deadline(0.01):
        time.sleep(5)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


def test_the_step_limit_truncates_and_counts_as_a_failure():
    (trajectory,) = run(rollout_worker(always_win), Assignment(0, task(1, steps=9), 1))
    assert (trajectory.status, trajectory.outcome, trajectory.counts) == (Status.TRUNCATED, -1, True)
    assert len(trajectory.steps) == SAMPLING.max_steps


def test_a_full_context_truncates_before_the_step_that_would_not_fit():
    acting = rollout_worker(always_win, max_context=120)
    (trajectory,) = run(acting, Assignment(0, task(1, steps=9), 1))
    assert (trajectory.status, trajectory.outcome) == (Status.TRUNCATED, -1)
    assert trajectory.error == "the policy's context is full"
    assert 0 < len(trajectory.steps) < SAMPLING.max_steps
    assert all(len(r.prompt_ids) + r.max_tokens <= 120 for r in acting.policy.engine.asked)


def test_a_first_prompt_that_does_not_fit_makes_an_episode_without_steps():
    (trajectory,) = run(rollout_worker(always_win, max_context=20), Assignment(0, task(1), 1))
    assert (trajectory.status, trajectory.steps) == (Status.TRUNCATED, ())


def test_an_invalid_action_is_recorded_as_invalid_and_answered_by_the_environment():
    acting = rollout_worker(lambda _: "dance")
    (trajectory,) = run(acting, Assignment(0, task(1), 1))
    assert [(s.action, s.valid) for s in trajectory.steps] == [("dance", False)] * 2
    assert acting.family.acted == ["dance", "dance"]


def test_valid_actions_are_recorded_as_valid():
    (trajectory,) = run(
        rollout_worker(lambda _: "\\boxed{1}", spoken=prompts("boxed_index")), Assignment(0, task(1), 1)
    )
    assert [(s.action, s.valid) for s in trajectory.steps] == [("win", True)] * 2


def samples(trajectories):
    return {(t.task_id, t.rollout): (t.seed, t.steps, t.outcome, t.first_observation) for t in trajectories}


def test_results_depend_neither_on_the_order_nor_on_the_batching_of_assignments():
    work = [Assignment(k, task(k), 3) for k in range(4)]
    together = samples(run(rollout_worker(by_seed), *work))
    backwards = samples(run(rollout_worker(by_seed), *work[::-1]))
    alone = {k: v for a in work for k, v in samples(run(rollout_worker(by_seed), a)).items()}
    assert together == backwards == alone
    assert {outcome for _, _, outcome, _ in together.values()} == {1, -1}


def test_a_crash_beside_it_changes_no_sample():
    work = [Assignment(0, task(0), 3)]
    beside = [*work, Assignment(1, task(1, fault="raise in step"), 3)]
    got = samples(run(rollout_worker(by_seed), *beside))
    assert {k: got[k] for k in samples(run(rollout_worker(by_seed), *work))} == samples(
        run(rollout_worker(by_seed), *work)
    )


def test_every_draw_has_its_own_seed_and_another_iteration_has_others():
    acting = rollout_worker(by_seed)
    run(acting, *[Assignment(k, task(k), 3) for k in range(3)])
    first = [r.seed for r in acting.policy.engine.asked]
    assert len(set(first)) == len(first) == 3 * 3 * 2
    again = partial(Sampling, run_seed=3, phase="act", temperature=0.8, max_steps=4)
    other = rollout_worker(by_seed)
    run(other, *[Assignment(k, task(k), 3) for k in range(3)], sampling=again(iteration=1))
    assert not set(first) & {r.seed for r in other.policy.engine.asked}


def test_trajectories_come_in_the_order_of_the_assignments():
    got = run(rollout_worker(always_win), Assignment(4, task(4), 2), Assignment(1, task(1), 1))
    assert [(t.slot, t.rollout) for t in got] == [(4, 0), (4, 1), (1, 0)]


class Normalising(Chat):
    """A chat whose tokenizer normalises text, as those of several models do."""

    def encode_choice(self, text: str) -> tuple[int, ...]:
        return super().encode_choice(unicodedata.normalize("NFC", text))

    def decode(self, ids: tuple[int, ...]) -> str:
        return super().decode(ids).strip()


@pytest.mark.parametrize(
    "command", [" look ", "go to the cafe\u0301", "heat to 300 \u212a", "say <think>", "read </think>"]
)
def test_a_command_that_is_sampled_from_those_on_offer_reaches_the_environment_as_it_was_offered(command):
    offered = (command, "win")
    chosen = unicodedata.normalize("NFC", command)
    acting = rollout_worker(lambda _: chosen, decoding="constrained", max_tokens=64)
    acting.policy.chat = Normalising()
    (trajectory,) = acting.roll_out([Assignment(0, task(1, steps=1, actions=offered), 1)], SAMPLING)
    assert acting.family.acted == [command]
    assert [(step.action, step.valid) for step in trajectory.steps] == [(command, True)]


def test_constrained_decoding_offers_the_admissible_actions_and_free_decoding_none():
    for decoding, expected in (("constrained", tuple(map(Chat().encode_choice, ACTIONS))), ("free", ())):
        acting = rollout_worker(always_win, decoding=decoding)
        run(acting, Assignment(0, task(1), 1))
        assert {r.choices for r in acting.policy.engine.asked} == {expected}


@pytest.mark.parametrize("call", ["reset", "step"])
def test_without_actions_constrained_decoding_is_an_error_and_never_free(call, monkeypatch):
    of = task(1, actions=[]) if call == "reset" else task(1)
    monkeypatch.setattr(Levels, "step", lambda *_: StepResult(Observation("nothing to choose"), False, False))
    (ended,) = run(rollout_worker(always_win, decoding="constrained"), Assignment(0, of, 1))
    assert (ended.status, ended.error, ended.steps) == (Status.ENV_ERROR, NO_ACTIONS, ())
    (free,) = run(rollout_worker(always_win, decoding="free"), Assignment(0, of, 1))
    assert (free.status, free.error) == (Status.TRUNCATED, "")


def test_every_session_is_released():
    acting = rollout_worker(always_win)
    run(acting, Assignment(0, task(1), 2), Assignment(1, task(2, fault="raise in step"), 1))
    engine = acting.policy.engine
    assert {r.session for r in engine.asked} <= set(engine.released)


def test_an_environment_that_cannot_be_closed_keeps_its_outcome():
    (trajectory,) = run(rollout_worker(always_win), Assignment(0, task(1, fault="raise in close"), 1))
    assert (trajectory.status, trajectory.outcome) == (Status.OK, 1)


def test_a_reply_without_an_index_never_acts_even_when_it_spells_out_an_action():
    (trajectory,) = run(rollout_worker(always_win, spoken=prompts("boxed_index")), Assignment(0, task(1), 1))
    assert not any(s.valid for s in trajectory.steps)
    assert trajectory.outcome == -1


def test_an_episode_of_two_versions_of_the_weights_is_refused():
    acting = rollout_worker(always_win)
    engine = acting.policy.engine
    acting.policy.sync(4)
    assert run(acting, Assignment(0, task(1), 1))

    def changed_after_the_first_turn(request):
        engine.version = 3 + len(engine.batches)
        return "win"

    engine.batches.clear()
    engine.script = changed_after_the_first_turn
    with pytest.raises(MachineError, match=r"weights of version 5, and those of version 4 were asked for"):
        run(acting, Assignment(0, task(1), 1))


def test_an_episode_that_its_environment_has_not_ended_is_no_success():
    acting = rollout_worker(always_win)
    environment = acting.family.environment()
    environment.step = lambda action: StepResult(Observation("nearly", ACTIONS), False, True)
    acting.family.environment = lambda: environment
    (cut,) = run(acting, Assignment(0, task(1), 1))
    assert (cut.status, cut.outcome, len(cut.steps)) == (Status.TRUNCATED, -1, SAMPLING.max_steps)


def test_a_family_that_has_no_place_plays_one_episode_at_a_time_and_loses_none():
    together, alone = rollout_worker(by_seed), rollout_worker(by_seed)
    alone.family.most_open = 0
    assert run(alone, Assignment(0, task(1), 3)) == run(together, Assignment(0, task(1), 3))


def test_a_family_with_few_places_plays_its_episodes_in_parts_with_the_same_results():
    together, parts = rollout_worker(by_seed), rollout_worker(by_seed)
    parts.family.most_open = 3
    opened = []

    def prepare(work):
        opened.append(len(work))
        assert parts.family.closed == sum(opened[:-1]), "the part before has ended"

    parts.family.prepare = prepare
    work = [Assignment(slot, task(slot), 4) for slot in range(2)]
    assert run(parts, *work) == run(together, *work)
    assert opened == [3, 3, 2]
