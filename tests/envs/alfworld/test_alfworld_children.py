"""Children of the real engine that hang, crash or play on. None needs it: a child is a few lines of Python here."""

from __future__ import annotations

import gc
import json
import sys
import time
from dataclasses import replace

import pytest

from envs.alfworld.engines import children
from envs.alfworld.engines.children import Idle
from envs.alfworld.engines.textworld_engine import (
    EngineCrashedError,
    TextworldEnvironment,
)
from envs.alfworld.games.game import Game, GameError
from envs.alfworld.games.pddl import problem_pddl
from envs.alfworld.tasks.sampling import task_of
from rlanything.core.types import Task


def child(code: str) -> tuple[str, ...]:
    """A child process that runs `code` instead of the engine."""
    return (sys.executable, "-c", f"import sys, time, json\n{code}")


ANSWER = json.dumps({"text": "Your task is to: UNKNOWN GOAL.", "actions": ["look"], "done": False})


def test_a_hanging_child_is_killed_in_time(tasks: list[Task]) -> None:
    environment = TextworldEnvironment(0.5, child("time.sleep(60)"))
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"did not answer within 0.5 s"):
        environment.reset(tasks[0], 0)
    assert time.monotonic() - start < 20
    environment.close()


def test_a_child_that_does_not_read_a_large_room_is_killed_in_time(tasks: list[Task]) -> None:
    """A pipe holds 64 kB, and the room is more."""
    game = Game.from_payload(tasks[0].payload)
    books = {f"Book|+{k / 100:05.2f}|+00.00|+00.00": sorted(game.receptacles)[0] for k in range(400)}
    large = replace(game, placements={**game.placements, **books})
    assert len(problem_pddl(large, "game")) > 1 << 16
    environment = TextworldEnvironment(0.5, child("time.sleep(20)"))
    start = time.monotonic()
    with pytest.raises(TimeoutError, match=r"did not answer within 0.5 s"):
        environment.reset(task_of(large), 0)
    assert time.monotonic() - start < 10


def test_a_child_that_trickles_is_killed_in_time(tasks: list[Task]) -> None:
    """Output without an end of line does not postpone the deadline."""
    code = "while True:\n sys.stdout.write('x'); sys.stdout.flush(); time.sleep(0.05)"
    environment = TextworldEnvironment(0.5, child(code))
    with pytest.raises(TimeoutError):
        environment.reset(tasks[0], 0)


def test_a_child_that_hangs_in_a_step_costs_one_episode(tasks: list[Task]) -> None:
    environment = TextworldEnvironment(
        5.0,
        child(f"sys.stdin.readline(); print({ANSWER!r}, flush=True); sys.stdin.readline(); time.sleep(60)"),
    )
    environment.reset(tasks[0], 0)
    environment._timeout = 0.3
    with pytest.raises(TimeoutError):
        environment.step("look")
    with pytest.raises(RuntimeError, match="call reset first"):
        environment.step("look")
    environment._timeout = 5.0
    assert environment.reset(tasks[0], 0).actions == ("look",)
    environment.close()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("sys.exit('no memory')", "no memory"),
        ("import os; os.kill(os.getpid(), 9)", "the engine ended|BrokenPipeError"),
        ("sys.stdin.readline(); print('planner says hello', flush=True)", "JSONDecodeError"),
        ('sys.stdin.readline(); print(\'{"error": "KeyError: val1"}\', flush=True)', "KeyError: val1"),
    ],
)
def test_a_crashing_child_is_reported(code: str, says: str, tasks: list[Task]) -> None:
    environment = TextworldEnvironment(5.0, child(code))
    with pytest.raises(EngineCrashedError, match=says):
        environment.reset(tasks[0], 0)


def test_the_sentence_is_put_in_by_the_parent(tasks: list[Task]) -> None:
    """The child never gets it, whatever it holds; nothing in it is read again."""
    code = (
        "line = sys.stdin.readline()\n"
        "leaked = 'UNKNOWN' in line or 'getpid' in line\n"
        f"print('leaked' if leaked else {ANSWER!r}, flush=True)\n"
        "sys.stdin.read()"
    )
    evil = "{__import__('os').getpid()} UNKNOWN GOAL \"quoted\" #look#"
    task = Task("alfworld", evil, {**tasks[0].payload, "annotated": True})
    environment = TextworldEnvironment(5.0, child(code))
    assert environment.reset(task, 0).text == f"Your task is to: {evil}."
    environment.close()


def test_unplayable_games_never_reach_the_child(tasks: list[Task]) -> None:
    game = Game.from_payload(tasks[0].payload)
    bare = task_of(replace(game, placements={}))
    with pytest.raises(GameError, match="cannot be reached"):
        TextworldEnvironment(1.0, child("time.sleep(60)")).reset(bare, 0)


ECHO = """
import os
for line in sys.stdin:
    print(json.dumps({"text": str(os.getpid()), "actions": ["look"], "done": False}), flush=True)
    if "slow" in line: break
time.sleep(60)
"""


def test_a_child_plays_the_next_episode_too(tasks: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two episodes that are open together have two; one that has played enough ends."""
    idle = Idle()
    together = [TextworldEnvironment(20.0, child(ECHO), idle) for _ in range(2)]
    first = {environment.reset(tasks[0], 0).text for environment in together}
    for environment in together:
        environment.close()
    again = [TextworldEnvironment(20.0, child(ECHO), idle) for _ in range(2)]
    assert {environment.reset(tasks[1], 0).text for environment in again} == first
    assert len(first) == 2
    monkeypatch.setattr(children, "MOST_GAMES", 2)
    for environment in again:
        environment.close()
    assert idle.take() is None


def interrupt(*_: object) -> bytes:
    raise KeyboardInterrupt


def test_a_child_that_owes_an_answer_or_has_died_plays_no_other_episode(
    tasks: list[Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = Idle()
    late = TextworldEnvironment(20.0, child(ECHO), idle)
    late.reset(tasks[0], 0)
    late.step("slow")
    late._timeout = 0.3
    with pytest.raises(TimeoutError):
        late.step("look")
    interrupted = TextworldEnvironment(20.0, child(ECHO), idle)
    interrupted.reset(tasks[0], 0)
    monkeypatch.setattr(interrupted, "_line", interrupt)
    with pytest.raises(KeyboardInterrupt):
        interrupted.step("look")
    for environment in (late, interrupted):
        environment.close()
    assert idle.take() is None
    dead = TextworldEnvironment(20.0, child(ECHO), idle)
    dead.reset(tasks[0], 0)
    dead.close()
    (waiting,) = idle._children
    waiting.process.kill()
    waiting.process.wait()
    assert idle.take() is None


def test_children_that_wait_end_with_their_family(tasks: list[Task]) -> None:
    idle = Idle()
    environment = TextworldEnvironment(20.0, child(ECHO), idle)
    environment.reset(tasks[0], 0)
    environment.close()
    (waiting,) = idle._children
    assert waiting.process.poll() is None
    del idle, environment
    gc.collect()
    assert waiting.process.poll() is not None
