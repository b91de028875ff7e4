"""Games on disk: written and read back the same, and bad files named before anything runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envs.alfworld.family import AlfworldFamily
from envs.alfworld.files import GameFileError, read_game, write_game
from envs.alfworld.games.game import Game, GameError
from envs.alfworld.games.pddl import parse_problem, problem_pddl
from envs.alfworld.games.scene_facts import all_facts
from envs.alfworld.tasks.sampling import task_of
from rlanything.core.types import Direction, Task


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_writing_and_reading_is_the_identity(
    data: st.DataObject, tasks: list[Task], tmp_path_factory: pytest.TempPathFactory
) -> None:
    task = data.draw(st.sampled_from(tasks))
    again = read_game(write_game(task, tmp_path_factory.mktemp("games")))
    assert again == replace(task, metadata=again.metadata)
    assert again.task_id == task.task_id


def test_the_folder_is_named_as_alfworld_names_it(tasks: list[Task], tmp_path: Path) -> None:
    folder = write_game(tasks[0], tmp_path)
    kind, target, none, place, scene = folder.parent.name.split("-")
    game = Game.from_payload(tasks[0].payload)
    assert (target, none, place, scene) == (
        game.goal.target,
        "None",
        game.goal.destination or game.goal.lamp,
        str(game.scene),
    )
    assert kind == tasks[0].payload["task_type"]
    assert sorted(p.name for p in folder.iterdir()) == [
        "game.tw-pddl",
        "initial_state.pddl",
        "traj_data.json",
    ]
    playable = json.loads((folder / "game.tw-pddl").read_text())
    assert set(playable) == {"pddl_domain", "grammar", "pddl_problem", "solvable"}
    assert f"Your task is to: {tasks[0].instruction}." in playable["grammar"]


def test_facts_beyond_the_tables_survive(tasks: list[Task]) -> None:
    """What downloaded games have and generated ones lack: shared places, odd doors, states, things in things."""
    game = Game.from_payload(tasks[0].payload)
    (one, two), thing = sorted(game.receptacles)[:2], sorted(game.placements)[0]
    odd = replace(
        game,
        receptacles={**game.receptacles, two: game.receptacles[one]},
        start="loc|7|7|1|30",
        added=(f"inReceptacle {thing} {one}", f"isCool {thing}", f"opened {two}", f"openable {two}"),
        removed=(f"pickupable {thing}",),
    )
    again = parse_problem(problem_pddl(odd, "x"), odd.scene, odd.goal)
    assert set(all_facts(again)) == set(all_facts(odd))
    assert Game.from_payload(again.payload) == again


def spoil(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text()))


def drop(key: str) -> Callable[[str], str]:
    return lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != key})


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("traj_data.json", lambda t: t[: len(t) // 2], "traj_data.json: "),
        ("traj_data.json", lambda t: "[]", "traj_data.json: expected a JSON object"),
        ("traj_data.json", drop("task_type"), "traj_data.json: it lacks 'task_type'"),
        ("traj_data.json", drop("scene"), "traj_data.json: it lacks 'scene'"),
        ("traj_data.json", lambda t: t.replace("pick", "make"), "task type"),
        ("traj_data.json", lambda t: t.replace('"scene_num": ', '"scene_num": 1e999, "was": '), "infinity"),
        (
            "initial_state.pddl",
            lambda t: t.replace("(:init", f"(:init {'(' * 9999}{')' * 9999}"),
            "(..) in :init",
        ),
        ("initial_state.pddl", lambda t: t.replace("(:init", "(:init fridge"), "fridge in :init is no fact"),
        ("initial_state.pddl", lambda t: t[: len(t) // 2], "truncated: 2 parentheses are open at its end"),
        ("initial_state.pddl", lambda t: "", "not one (define ..)"),
        ("initial_state.pddl", lambda t: t + ")", "closes a parenthesis too many"),
        (
            "initial_state.pddl",
            lambda t: t.replace("(atLocation agent1", "(checked agent1"),
            "starts at 0 locations",
        ),
        ("initial_state.pddl", lambda t: t.replace("(pickupable", "(explodes"), "is not a fact of ALFRED"),
        (
            "initial_state.pddl",
            lambda t: t.replace("(exists (?o - object)", "(forall (?o - object)"),
            "the goal",
        ),
        ("initial_state.pddl", lambda t: t.replace("(cleanable", "(moveable"), ""),
        ("initial_state.pddl", lambda t: t.replace("(inReceptacle Z", "(inReceptacle"), ""),
        ("game.tw-pddl", lambda t: t[:100], "game.tw-pddl: "),
        ("game.tw-pddl", lambda t: t.replace("Your task is to", "Please"), "does not say the task"),
        (
            "game.tw-pddl",
            lambda t: t.replace("Your task is to: ", "Your task is to: do not "),
            "does not say the goal",
        ),
    ],
)
def test_bad_files_are_named(name: str, change: Callable[[str], str], says: str, tmp_path: Path) -> None:
    task = AlfworldFamily(task_types=["pick"]).make("train", 1, 0)[0]
    folder = write_game(task, tmp_path)
    spoil(folder / name, change)
    if not says:
        read_game(folder)  # a harmless difference
        return
    with pytest.raises(GameFileError) as caught:
        read_game(folder)
    assert says in str(caught.value)
    assert str(folder) in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_damage_is_named_or_harmless(data: st.DataObject, damaged: Path) -> None:
    """A slice cut out of, or a few characters put into, any of the three files."""
    path = damaged / data.draw(st.sampled_from(["traj_data.json", "initial_state.pddl", "game.tw-pddl"]))
    whole = path.read_text()
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 200))
    text = data.draw(st.text(alphabet='()[]{}",:; aA1|_-\n', max_size=5))
    path.write_text(whole[:at] + text + whole[at + cut :])
    try:
        read_game(damaged)
    except GameFileError as error:
        assert str(damaged) in str(error)  # noqa: PT017 - harmless damage raises nothing
    finally:
        path.write_text(whole)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    task = AlfworldFamily(task_types=["heat"]).make("train", 1, 0)[0]
    return write_game(task, tmp_path_factory.mktemp("damaged"))


def test_missing_files_are_named(tasks: list[Task], tmp_path: Path) -> None:
    folder = write_game(tasks[0], tmp_path)
    (folder / "initial_state.pddl").unlink()
    with pytest.raises(GameFileError, match=r"initial_state.pddl: No such file"):
        read_game(folder)


def test_solved_and_unsolvable_games_are_refused_by_writing_and_reading(
    tasks: list[Task], tmp_path: Path
) -> None:
    task = AlfworldFamily(task_types=["pick"]).make("train", 1, 0)[0]
    game = Game.from_payload(task.payload)
    place = game.receptacles_of(game.goal.destination)[0]
    solved = replace(
        game, placements={**game.placements, **dict.fromkeys(game.objects_of(game.goal.target), place)}
    )
    with pytest.raises(GameError, match="holds from the start"):
        write_game(task_of(solved), tmp_path)
    folder = write_game(task, tmp_path)
    (folder / "initial_state.pddl").write_text(problem_pddl(solved, "x"))
    with pytest.raises(GameFileError, match="holds from the start"):
        read_game(folder)
    empty = replace(
        game,
        placements={o: r for o, r in game.placements.items() if o not in game.objects_of(game.goal.target)},
    )
    (folder / "initial_state.pddl").write_text(problem_pddl(empty, "x"))
    with pytest.raises(GameFileError, match="cannot be reached"):
        read_game(folder)


def test_sentences_that_the_grammar_would_run_are_not_written(tasks: list[Task], tmp_path: Path) -> None:
    payload = {**tasks[0].payload, "annotated": True}
    for evil in ("{__import__('os').getpid()}", 'a "quote"', "#look.feedback#", "back\\slash", "[x]"):
        with pytest.raises(GameError, match="would evaluate"):
            write_game(Task("alfworld", evil, payload), tmp_path)


def test_sentences_of_people_are_kept(tasks: list[Task], tmp_path: Path) -> None:
    task = Task("alfworld", "Bring me the thing, please", {**tasks[0].payload, "annotated": True})
    again = read_game(write_game(task, tmp_path))
    assert again.instruction == "Bring me the thing, please"
    assert again.task_id == task.task_id


@pytest.fixture
def downloaded(family: AlfworldFamily, tmp_path: Path) -> Path:
    """A set in the layout of the download: eight games in each folder."""
    for split, name in (("train", "train"), ("in_domain", "valid_seen"), ("out_of_domain", "valid_unseen")):
        for task in family.make(split, 8, 21):
            write_game(task, tmp_path / "json_2.1.1" / name)
    return tmp_path


def test_a_downloaded_set_gives_the_same_tasks(family: AlfworldFamily, downloaded: Path) -> None:
    loaded = AlfworldFamily(data=str(downloaded))
    for split in ("train", "in_domain", "out_of_domain"):
        tasks = loaded.make(split, 8, 0)
        assert {t.task_id for t in tasks} == {t.task_id for t in family.make(split, 8, 21)}
        assert all(t.metadata["split"] == split and "trial_G" in t.metadata["source"] for t in tasks)
        assert [loaded.validate(t) for t in tasks] == [""] * 8
    assert loaded.make("train", 4, 0) == loaded.make("train", 4, 0) != loaded.make("train", 4, 1)
    panel = loaded.make("reward_panel", 8, 0)
    assert {t.task_id for t in panel} == {t.task_id for t in loaded.make("out_of_domain", 8, 0)}


def test_downloaded_tasks_play_and_adapt(downloaded: Path) -> None:
    loaded = AlfworldFamily(data=str(downloaded))
    for task in loaded.make("train", 8, 0):
        actions = [a for _, a in loaded.demonstrate(task, 0, 0.0)]
        assert all(loaded.label_steps(task, actions))
        child = loaded.parse(task, loaded.rewrite(task, Direction.EASIER, 0))
        assert loaded.validate(child) == ""


def test_the_data_folder_may_be_a_variable(downloaded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALFWORLD_DATA", str(downloaded))
    for name in ("$ALFWORLD_DATA", "$ALFWORLD_DATA/json_2.1.1"):
        assert len(AlfworldFamily(data=name).make("train", 8, 0)) == 8


def test_refuse_names_the_bad_file_and_skip_leaves_it_out(
    downloaded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = next((downloaded / "json_2.1.1" / "train").rglob("initial_state.pddl"))
    spoil(bad, lambda text: text[:500])
    with pytest.raises(GameFileError, match="truncated") as caught:
        AlfworldFamily(data=str(downloaded)).make("train", 8, 0)
    assert str(bad) in str(caught.value)
    skipping = AlfworldFamily(data=str(downloaded), on_bad_file="skip")
    with caplog.at_level("WARNING"):
        assert len(skipping.make("train", 7, 0)) == 7
    assert str(bad) in caplog.text
    with pytest.raises(ValueError, match="has 7 games that can be played, 8 were asked for"):
        skipping.make("train", 8, 0)


def test_games_marked_unsolvable_or_of_other_types_are_no_part_of_the_set(downloaded: Path) -> None:
    train = downloaded / "json_2.1.1" / "train"
    games = sorted(train.rglob("game.tw-pddl"))
    spoil(games[0], lambda text: json.dumps({**json.loads(text), "solvable": False}))
    sliced = games[1].parent.parent
    sliced.rename(sliced.with_name(sliced.name.replace("-None-", "Sliced-None-")))
    left = sum(1 for g in train.rglob("game.tw-pddl") if "Sliced" not in str(g)) - 1
    assert len(AlfworldFamily(data=str(downloaded)).make("train", left, 0)) == left
    with pytest.raises(ValueError, match=f"has {left} games"):
        AlfworldFamily(data=str(downloaded)).make("train", left + 1, 0)


def test_task_types_select_downloaded_games(downloaded: Path) -> None:
    chosen = AlfworldFamily(data=str(downloaded), task_types=["look", "two"])
    kinds = {t.payload["task_type"] for t in chosen.make("train", 2, 0)}
    assert kinds <= {"look_at_obj_in_light", "pick_two_obj_and_place"}
