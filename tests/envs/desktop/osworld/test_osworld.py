"""OSWorld's family over the bridge: whole episodes, their verdicts, errors, and many worlds at once."""

from __future__ import annotations

import pytest
from desktop_cases import BRIDGE, SCREEN, family, liar, task
from scripted import chat_model, prompts

from envs.desktop.bridge.answers import TaskFailed, WorldError, WorldTimeout
from envs.desktop.bridge.world import World
from rlanything.config import RolloutConfig
from rlanything.core.errors import MachineError
from rlanything.core.protocols import Environment, Limited, Prepares
from rlanything.core.types import Status
from rlanything.core.unittests import Prefetches
from rlanything.loop.rollout import Assignment, RolloutWorker, Sampling

TYPED = {"func": "typed", "expected": "hi"}


def test_what_a_world_says_of_itself_is_for_the_record(made, files, monkeypatch):
    ended, close = [], World.close
    monkeypatch.setattr(World, "close", lambda self: (ended.append(self), close(self)))
    found = made.programs()
    assert len(ended) == 1, "the ids of its processes may be those of others when it is ended once more"
    assert found["provider"] == "docker"
    assert len(found["evaluators"]) == 64
    assert family(files, command=("no-such-program",)).programs() == {}
    assert made._pool._taken == 0


def test_a_whole_episode(made):
    environment = made.environment()
    assert isinstance(environment, Environment)
    first = environment.reset(task(TYPED), 0)
    assert first.text.splitlines() == ["Type it.", '[1] push-button "Save"', '[2] entry "" focused']
    seen = environment.step("type 2 hi").observation.text
    assert seen.splitlines()[0] == 'You typed "hi" into entry "" 2.'
    assert seen.splitlines()[2] == '[2] entry "" value "hi" focused'
    for refused, reason in [
        ("click 9", "there is no such element."),
        ("nonsense", "that is not an action"),
        ('{"action_type": "CLICK", "x": 96, "y": 1}', "outside the screen, which has 96 x 64 pixels"),
    ]:
        result = environment.step(refused)
        assert result.observation.text.startswith("You did nothing: ")
        assert reason in result.observation.text
        assert not result.done
    ended = environment.step(
        '<tool_call>{"name": "computer_use", "arguments": {"action": "terminate"}}</tool_call>'
    )
    assert (ended.done, ended.success) == (True, True)
    with pytest.raises(RuntimeError, match="after the end"):
        environment.step("wait")
    environment.close()


def test_a_policy_that_sees_pictures_gets_them(files):
    made = family(files, observe="screenshot")
    environment = made.environment()
    first = environment.reset(task(TYPED), 0)
    assert first.text == "Type it."
    assert [(image.width, image.height) for image in first.images] == [SCREEN]
    refused = environment.step("click 1").observation
    assert refused.images == first.images
    result = environment.step('{"action_type": "TYPING", "text": "hi"}')
    assert (result.observation.text, len(result.observation.images)) == ('You typed "hi".', 1)
    assert environment.step("done").success
    environment.close()
    made._pool.close()


def test_errors_are_no_failures_of_the_policy(made):
    environment = made.environment()
    environment.reset(task({"func": "raise"}), 0)
    with pytest.raises(TaskFailed, match="the file is gone"):
        environment.step("done")
    with pytest.raises(TaskFailed, match="Invalid URL"):
        environment.reset(task(TYPED, config=[{"type": "download"}]), 0)
    environment.close()
    assert made._pool.starts == 1
    with pytest.raises(WorldError, match="no such snapshot"):
        environment.reset(task(TYPED, config="no snapshot"), 0)
    environment.reset(task(TYPED), 0)
    environment.close()
    assert made._pool.starts == 3, (
        "the machine that failed, the one in which it was tried again, and the last"
    )


def test_a_turn_is_made_in_all_worlds_at_the_same_time(files, tmp_path):
    """Each waits for the other three: one after the other, the first would never answer."""
    body = f"""import os, pathlib
        here, asked_for = pathlib.Path({str(tmp_path)!r}), asked["do"]
        (here / f"{{asked_for}}-{{os.getpid()}}").touch()
        while len(list(here.glob(f"{{asked_for}}-*"))) < 4: time.sleep(0.01)
        print(json.dumps({{"id": ID, "ok": {{"tree": "", "screenshot": None}}}}), flush=True)"""
    made = family(files, liar(body), worlds=4)
    assert isinstance(made, Prepares)
    assert isinstance(made, Prefetches)
    assert isinstance(made, Limited)
    work = [(task(TYPED), seed) for seed in range(4)]
    made.prepare(work)
    environments = [made.environment() for _ in work]
    assert {e.reset(*one).text for e, one in zip(environments, work, strict=True)} == {"Type it."}
    made.prefetch([(one, "wait") for one, _ in work])
    assert {e.step("wait").observation.text for e in environments} == {"You waited."}
    for environment in environments:
        environment.close()
    made._pool.close()


def test_what_fails_ahead_of_time_says_so_when_it_is_asked_for(files, monkeypatch):
    monkeypatch.setattr("envs.desktop.bridge.world.CLOSING", 0.1)  # it sleeps
    made = family(files, liar("time.sleep(60)"), timeout=0.5, worlds=2)
    made.prepare([(task(TYPED), 0)])
    with pytest.raises(WorldTimeout):
        made.environment().reset(task(TYPED), 0)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"screen": (100, 64)}, "screen has"),
        ({"evaluators": "ab"}, "env.evaluators says ab"),
        ({"command": ("no-such-world",)}, "no-such-world"),
    ],
)
def test_another_world_than_is_meant_ends_the_run(files, more, message):
    made = family(files, **{"command": BRIDGE, **more})
    assert made.programs() == {}, "what it says of itself is asked for first"
    with pytest.raises(MachineError, match=message):
        made.environment()


@pytest.mark.parametrize(
    ("evaluator", "steps", "found"),
    [
        (TYPED, 2, (Status.OK, 1, 2)),
        (TYPED, 1, (Status.OK, 1, 1)),
        ({"func": "typed", "expected": "ho"}, 2, (Status.TRUNCATED, -1, 2)),
        ({"func": "infeasible"}, 2, (Status.TRUNCATED, -1, 2)),
        ({"func": "raise"}, 2, (Status.ENV_ERROR, -1, 1)),
    ],
)
def test_an_episode_at_its_limit_is_evaluated(made, evaluator, steps, found):
    model = chat_model(lambda request: "wait" if request.session and turns.pop() else "type 2 hi", 100_000)
    turns = [True, False]
    worker = RolloutWorker(made, model, prompts(action_format="verbatim"), RolloutConfig(timeout_s=60.0))
    [played] = worker.roll_out([Assignment(0, task(evaluator), 1)], Sampling(0, "act", 0, 1.0, steps))
    assert (played.status, played.outcome, len(played.steps)) == found
