"""The real engine: parity with the fast one, and instruction text that stays text.

Most of it runs where the extra is installed (`pip install 'rlanything[alfworld]'`) and is skipped elsewhere. Set
ALFWORLD_DATA to also compare downloaded games.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envs.alfworld.engines.fast import FastEnvironment
from envs.alfworld.engines.textworld_engine import (
    MOST_OPEN,
    WORKER,
    TextworldEnvironment,
)
from envs.alfworld.family import AlfworldFamily
from envs.alfworld.files import data_root, load_tasks, write_game
from envs.alfworld.games.alfred import TASK_TYPES
from envs.alfworld.games.game import Game
from envs.alfworld.play.world import compile_world
from envs.alfworld.tasks.sampling import task_of
from envs.alfworld.teacher.oracle import Oracle
from rlanything.core.protocols import Environment, Limited
from rlanything.core.types import Task

INSTALLED = all(importlib.util.find_spec(name) for name in ("alfworld", "textworld", "fast_downward"))
needs_engine = pytest.mark.skipif(
    not INSTALLED, reason="the real engine is not installed: pip install 'rlanything[alfworld]'"
)


@pytest.mark.skipif(INSTALLED, reason="says what to install only where it is missing")
def test_the_missing_extra_is_named() -> None:
    with pytest.raises(ValueError, match=r"pip install 'rlanything\[alfworld\]'"):
        AlfworldFamily(engine="textworld")


def test_only_so_many_episodes_of_the_real_engine_are_open_together(
    monkeypatch: pytest.MonkeyPatch, family: AlfworldFamily
) -> None:
    """Each is a process with open files. A panel with more goes in parts (`tests/loop/test_rollout.py`)."""
    monkeypatch.setattr("envs.alfworld.family.require_textworld", lambda: None)
    real: object = AlfworldFamily(engine="textworld")
    assert isinstance(real, Limited)
    assert real.most_open == MOST_OPEN <= 1024 / 3 / 4
    assert not isinstance(family, Limited)


def compare(task: Task, real: Environment, fast: FastEnvironment, seed: int, oracle_share: float) -> int:
    """Plays one game in both engines; every text, command list, reward and end must be equal. Returns the steps."""
    rng, oracle = random.Random(seed), Oracle(compile_world(Game.from_payload(task.payload)))
    first = fast.reset(task, 0)
    assert real.reset(task, 0) == first
    actions, steps = first.actions, 0
    for turn in range(40):
        hands_on = [c for c in actions if not c.startswith(("go to", "look", "help", "inventory"))]
        action = rng.choice(hands_on) if hands_on and rng.random() < 0.5 else rng.choice([*actions, "xyzzy"])
        if rng.random() < oracle_share or turn > 20:
            action = rng.choice(oracle.helpful_commands() or actions)
        expected, steps = fast.step(action), steps + 1
        assert real.step(action) == expected, (task.task_id, turn, action)
        oracle.step(action)
        actions = expected.observation.actions
        if expected.done:
            break
    return steps


@pytest.mark.long
@pytest.mark.textworld
@needs_engine
@pytest.mark.parametrize("games", [72, pytest.param(300, marks=pytest.mark.slow)])
def test_parity_on_fresh_games(games: int, record_property: pytest.RecordProperty) -> None:
    """Random and oracle play over all task types, levels and rooms: zero differences."""
    family, others = AlfworldFamily(engine="textworld"), games // 3
    tasks = family.make("train", games - others, 77) + family.make("out_of_domain", others, 77)
    assert len({task.payload["task_type"] for task in tasks}) == len(TASK_TYPES)
    real, fast, steps = family.environment(), FastEnvironment(), 0
    for seed, task in enumerate(tasks):
        steps += compare(task, real, fast, seed, oracle_share=(seed % 3) / 2)
    real.close()
    record_property("parity", f"{len(tasks)} games, {steps} steps, 0 differences")
    print(f"\nparity: {len(tasks)} games, {steps} steps, 0 differences")


@pytest.mark.textworld
@needs_engine
def test_children_that_have_played_play_as_new_ones() -> None:
    """Also after an episode that was cut off in its middle."""
    real, tasks = AlfworldFamily(engine="textworld"), AlfworldFamily().make("train", 6, 41)
    for pair in (tasks[:2], tasks[2:4], tasks[4:], tasks[:2]):
        playing = [(task, real.environment(), FastEnvironment()) for task in pair]
        for task, slow, fast in playing:
            assert slow.reset(task, 0) == fast.reset(task, 0)
        for turn in range(4):
            for _, slow, fast in playing:
                actions = fast.step("look").observation.actions
                slow.step("look")
                assert slow.step(actions[turn]) == fast.step(actions[turn])
        for _, slow, _ in playing:
            slow.close()
    assert len(real._idle._children) == 2
    assert sorted(waiting.games for waiting in real._idle._children) == [4, 4]


@pytest.mark.long
@pytest.mark.textworld
@needs_engine
def test_parity_where_receptacles_share_a_location(family: AlfworldFamily) -> None:
    """As in most downloaded games; also with the agent starting in front of furniture."""
    real, fast = TextworldEnvironment(60.0), FastEnvironment()
    for seed, task in enumerate(family.make("out_of_domain", 12, 5)):
        game, rng = Game.from_payload(task.payload), random.Random(seed)
        places = sorted(game.receptacles.values())[:3]
        start = places[0] if seed % 3 == 0 else game.start
        crowded = task_of(
            replace(game, start=start, receptacles={r: rng.choice(places) for r in game.receptacles})
        )
        if not family.validate(crowded):
            compare(crowded, real, fast, seed, oracle_share=0.2)
    real.close()


@pytest.mark.textworld
@needs_engine
@pytest.mark.skipif(
    "ALFWORLD_DATA" not in os.environ,
    reason="ALFWORLD_DATA names no downloaded set; alfworld-download fetches it (envs/alfworld/README.md)",
)
def test_parity_on_downloaded_games() -> None:
    root = data_root(os.environ["ALFWORLD_DATA"])
    kinds = ["pick", "look", "clean", "heat", "cool", "two"]
    real, fast = TextworldEnvironment(60.0), FastEnvironment()
    for split in ("in_domain", "out_of_domain"):
        for seed, task in enumerate(load_tasks(root, split, 20, 0, kinds, "refuse")[0]):
            compare(task, real, fast, seed, oracle_share=0.5)
    real.close()


@pytest.mark.long
@pytest.mark.textworld
@needs_engine
def test_the_caches_change_nothing(family: AlfworldFamily) -> None:
    """The same games in the engine as it is distributed."""
    plain, fast = TextworldEnvironment(120.0, (*WORKER, "--plain")), FastEnvironment()
    for seed, task in enumerate(family.make("train", 3, 9)):
        compare(task, plain, fast, seed, oracle_share=0.7)
    plain.close()


@pytest.mark.textworld
@needs_engine
def test_instruction_text_is_never_evaluated(tasks: list[Task]) -> None:
    real, fast = TextworldEnvironment(60.0), FastEnvironment()
    for text in (
        "{__import__('os').getpid()}",
        '"quoted" and {braces} [x | holds(a, o)]',
        "#look.feedback#",
        "back\\slash \\n UNKNOWN GOAL",
        '"""; action evil {}',
    ):
        task = Task("alfworld", text, {**tasks[0].payload, "annotated": True})
        assert real.reset(task, 0) == fast.reset(task, 0)
        assert real.reset(task, 0).text.endswith(f"Your task is to: {text}.")
    real.close()


@pytest.mark.long
@pytest.mark.textworld
@needs_engine
def test_alfworld_itself_accepts_the_written_games(family: AlfworldFamily, tmp_path: Path) -> None:
    """Its own environment collects, loads and plays them; the actions of the expert win."""
    for task in family.make("train", 6, 13):
        write_game(task, tmp_path / "train")
    code = """
import json, sys
from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv
config = {"env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6], "domain_randomization": False,
    "expert_type": "handcoded"}, "general": {"training_method": "dqn"},
    "rl": {"training": {"max_nb_steps_per_episode": 50}},
    "dataset": {"data_path": sys.argv[1], "num_train_games": 0}}
found = AlfredTWEnv(config, train_eval="train")
env = found.init_env(batch_size=1)
texts = [env.reset()[0][0] for _ in range(2)]
print(json.dumps([found.num_games, texts]))
"""
    data = {**os.environ, "ALFWORLD_DATA": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=data,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    count, texts = json.loads(done.stdout.strip().splitlines()[-1])
    assert count == 6
    assert all("Your task is to: " in text and "UNKNOWN" not in text for text in texts)


@pytest.mark.textworld
@needs_engine
def test_the_facts_are_what_extraction_gives(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "envs" / "alfworld"
    subprocess.run([sys.executable, str(folder / "extract.py"), str(tmp_path)], check=True, timeout=120)
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (folder / "facts" / path.name).read_bytes(), path.name
