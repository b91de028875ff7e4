"""Games on disk, in ALFWorld's format: `<task>-<object>-None-<place>-<scene>/<trial>/` with three files.

traj_data.json      the goal, the scene and the sentences
initial_state.pddl  the room
game.tw-pddl        domain, grammar and problem in one, for the real engine
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from envs.alfworld.engines.textworld_engine import PLACEHOLDER
from envs.alfworld.games.alfred import TASK_TYPES, domain_text, grammar_text
from envs.alfworld.games.game import Game, GameError, Goal
from envs.alfworld.games.pddl import parse_problem, problem_pddl
from envs.alfworld.play.validate import why_invalid
from envs.alfworld.tasks.sampling import ENV
from envs.splits import IN_DOMAIN, OUT_OF_DOMAIN, REWARD_PANEL
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task
from rlanything.files.atomic import write_text
from rlanything.files.reader import FileError, read_object, read_text

FOLDERS = {
    TRAIN: "train",
    IN_DOMAIN: "valid_seen",
    OUT_OF_DOMAIN: "valid_unseen",
    REWARD_PANEL: "valid_unseen",
}
"""Our splits -> folders of json_2.1.1."""

_SAID = "Your task is to: "
_SENTENCE = re.compile(r'((?:[^"\\]++|\\.)*+)"')
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 ,.'-]+")
_LOG = logging.getLogger(__name__)


class GameFileError(GameError):
    """A game on disk that cannot be read or played; the message begins with its path."""


def write_game(task: Task, root: Path) -> Path:
    """Write the task as a game under `root`; returns its folder. Raises `GameError` when it is invalid."""
    if reason := why_invalid(task):
        raise GameError(reason)
    if not _PLAIN_TEXT.fullmatch(task.instruction):
        raise GameError(
            f"the real engine would evaluate {task.instruction!r}: only letters, digits and , . ' - are safe"
        )
    game = Game.from_payload(task.payload)
    goal, trial = game.goal, f"trial_G{task.task_id[:16]}"
    place = goal.destination or goal.lamp
    folder = root / f"{TASK_TYPES[goal.task]}-{goal.target}-None-{place}-{game.scene}" / trial
    problem = problem_pddl(game, trial)
    grammar = grammar_text().replace(PLACEHOLDER, task.instruction)
    playable = {"pddl_domain": domain_text(), "grammar": grammar, "pddl_problem": problem, "solvable": True}
    write_text(folder / "traj_data.json", json.dumps(_traj_data(task, game, trial)))
    write_text(folder / "initial_state.pddl", problem)
    write_text(folder / "game.tw-pddl", json.dumps(playable))
    return folder


def _traj_data(task: Task, game: Game, trial: str) -> dict[str, Any]:
    return {
        "task_id": trial,
        "task_type": TASK_TYPES[game.goal.task],
        "pddl_params": game.goal.params,
        "scene": {"floor_plan": f"FloorPlan{game.scene}", "scene_num": game.scene, "random_seed": 0},
        "turk_annotations": {"anns": [{"task_desc": task.instruction, "high_descs": [], "votes": [1]}]},
        "plan": {"high_pddl": [], "low_actions": []},
    }


def read_game(folder: Path) -> Task:
    """The game of a trial folder. Raises `GameFileError`, naming the file."""
    trajectory = _json(folder / "traj_data.json")
    playable = _json(folder / "game.tw-pddl")
    try:
        goal = Goal.from_params(trajectory["task_type"], trajectory["pddl_params"])
        scene = int(trajectory["scene"]["scene_num"])
        sentence = _sentence(playable["grammar"])
        annotated = sentence not in goal.sentences
        if annotated and sentence not in [a["task_desc"] for a in trajectory["turk_annotations"]["anns"]]:
            raise GameError(f"its sentence {sentence!r} does not say the goal: {goal.sentences[0]}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:  # overflow: a number as 1e999
        raise GameFileError(f"{folder / 'traj_data.json'}: {_reason(error)}") from error
    return _read_scene(folder, scene, goal, sentence, annotated)


def _read_scene(folder: Path, scene: int, goal: Goal, sentence: str, annotated: bool) -> Task:
    path = folder / "initial_state.pddl"
    try:
        game = parse_problem(read_text(path), scene, goal, annotated)
    except FileError as error:
        raise GameFileError(str(error)) from error
    except GameError as error:
        raise GameFileError(f"{path}: {_reason(error)}") from error
    task = Task(ENV, sentence, game.payload, {"source": f"{folder.parent.name}/{folder.name}"})
    if reason := why_invalid(task):
        raise GameFileError(f"{path}: {reason}")
    return task


def _is_unsolvable(folder: Path) -> bool:
    """Whether the set marks the game as unsolvable. 140 and 134 of the valid games are not."""
    return _json(folder / "game.tw-pddl").get("solvable") is not True


def _json(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except FileError as error:
        raise GameFileError(str(error)) from error


def _sentence(grammar: Any) -> str:
    if not isinstance(grammar, str):
        raise GameError("the grammar of game.tw-pddl is no text")
    _, said, rest = grammar.partition(_SAID)
    found = _SENTENCE.match(rest)
    if not (said and found):
        raise GameError("game.tw-pddl does not say the task")
    return str(json.loads(f'"{found.group(1).rstrip().removesuffix(".")}"')).strip()


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it lacks {error}"
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def data_root(data: str) -> Path:
    """The folder with `train`, `valid_seen` and `valid_unseen`; variables such as $ALFWORLD_DATA are expanded.

    Raises `ValueError` when it is not there.
    """
    expanded = os.path.expandvars(os.path.expanduser(data))
    if "$" in expanded:
        raise ValueError(f"data: {data!r} names an environment variable that is not set")
    for root in (Path(expanded), Path(expanded) / "json_2.1.1"):
        if any((root / name).is_dir() for name in FOLDERS.values()):
            return root
    raise ValueError(f"data: {expanded!r} has none of the folders {', '.join(sorted(set(FOLDERS.values())))}")


def trial_folders(root: Path, task_types: Collection[str]) -> Iterator[Path]:
    """The games of these task types that ALFWorld plays, sorted: none with sliced or nested targets."""
    wanted = tuple(f"{TASK_TYPES[t]}-" for t in task_types)
    for group in sorted(root.iterdir()):
        if group.is_dir() and group.name.startswith(wanted) and "Sliced" not in group.name:
            yield from sorted(f for f in group.iterdir() if (f / "game.tw-pddl").exists())


def load_tasks(
    root: Path, split: str, count: int, seed: int, task_types: Collection[str], on_bad_file: str
) -> tuple[list[Task], list[str]]:
    """`count` distinct games of a split in an order that depends on the seed, and what was wrong with those left out.

    Every file is read before a run starts: `refuse` raises `GameFileError` for the first bad one. Raises `ValueError`
    when there are not enough.
    """
    folder = root / FOLDERS[split]
    if not folder.is_dir():
        raise ValueError(f"data: {str(root)!r} has no folder {FOLDERS[split]}")
    trials = list(trial_folders(folder, task_types))
    random.Random(derive_seed(seed, "alfworld/files", split)).shuffle(trials)
    tasks, bad = _first(trials, count, split, skip=on_bad_file == "skip")
    if len(tasks) < count:
        raise ValueError(f"{folder} has {len(tasks)} games that can be played, {count} were asked for")
    return tasks, bad


def _first(trials: Sequence[Path], count: int, split: str, skip: bool) -> tuple[list[Task], list[str]]:
    tasks: dict[str, Task] = {}
    bad: list[str] = []
    for trial in trials:
        if len(tasks) == count:
            break
        try:
            if _is_unsolvable(trial):
                continue
            task = read_game(trial)
        except GameFileError as error:
            if not skip:
                raise
            _LOG.warning("left out: %s", error)
            bad.append(str(error))
            continue
        tasks[task.task_id] = Task(
            task.env, task.instruction, task.payload, {**task.metadata, "split": split}
        )
    return list(tasks.values()), bad
