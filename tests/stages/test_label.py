"""Another reward panel for the final measurement: labels of judges, trajectories of another policy, solved tasks."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import golden_cases as golden
import pytest

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError
from rlanything.core.types import Observation, StepResult, Task
from rlanything.files.images import ImageStore
from rlanything.files.records import read_lines, write_lines
from rlanything.loop.chat_model import ChatModel
from rlanything.loop.prompts import Prompts
from rlanything.planning import check, dvcfile
from rlanything.report.results.evaluations import read_evaluation
from rlanything.runs import build
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import evaluate, label, solving
from rlanything.stages.declared import STAGES
from rlanything.stages.solving import solve

JUDGES = {"same": {"path": "models/reward", "votes": 5}, "other": {"path": "models/policy", "votes": 4}}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    return golden.project(tmp_path_factory.mktemp("label") / "project")


def configured(**changes: object) -> Config:
    data = golden.configuration().model_dump(by_alias=True)
    return parse({**data, "evaluate": {**data["evaluate"], **changes}})


def measured(config: Config, root: Path, arm: str = "base") -> dict[str, object]:
    evaluate.evaluate_arm(config, root, arm)
    return json.loads(Layout(root).evaluation(arm).read_text())["seeds"]["0"]


def test_the_default_needs_no_label_stage(root):
    config = configured()
    with pytest.raises(ConfigError, match=r"evaluate\.labels = 'oracle'.*nothing to label"):
        next(stage for stage in STAGES if stage.name == "label").check_needed(config)
    assert "  label:" not in dvcfile.text(config)
    found = measured(config, root)
    assert "labels" not in found
    assert set(found) == {
        "in_domain", "out_of_domain", "episode_steps", "success_within", "rm_process", "rm_pairwise",
        "rm_outcome", "accepted_tasks",
    }  # fmt: skip
    for panel in ("in_domain", "out_of_domain"):
        outcomes, lengths = found[panel], found["episode_steps"][panel]
        within = found["success_within"][panel]
        assert len(within) == config.evaluate.max_steps
        assert within == sorted(within)
        assert within[-1] == pytest.approx(sum(sum(o) / len(o) for o in outcomes.values()) / len(outcomes))
        assert {t: len(o) for t, o in outcomes.items()} == {t: len(n) for t, n in lengths.items()}


def test_two_judges_label_the_same_steps_side_by_side(root):
    config = configured(labels="judge", judges=JUDGES)
    with pytest.raises(ConfigError, match="rlanything label"):
        evaluate.evaluate_arm(config, root, "base")
    label.make_labels(config, root)
    oracle = list(read_lines(Layout(root).reward_panel("reward_panel"), "bootstrap"))
    (panels,) = label.final_panels(config, Layout(root)).values()
    assert list(panels) == ["same", "other"]
    for lines in panels.values():
        assert [x["trajectory"] for x in lines] == [x["trajectory"] for x in oracle]
        assert [len(x["labels"]) for x in lines] == [len(x["labels"]) for x in oracle]
    found = measured(config, root)
    steps = sum(len(x["labels"]) for x in oracle)
    for counted in found["labels"].values():
        assert sum(counted["left_out"].values()) == steps
        hits = [h for task in counted["rm_process"].values() for h in task.values()]
        assert sum(total for _, total in hits) == counted["left_out"]["labelled"]
    # The reward model's own majority labels agree with it far better than those of a model that never judged.
    assert found["rm_process"] == found["labels"]["same"]["rm_process"]
    assert found["labels"]["other"]["left_out"]["invalid"] > 0
    plain = read_evaluation(Layout(root).evaluation("base"), "base")["rm_process_plain"]
    assert plain.hits.sum() / plain.totals.sum() > 0.7


def test_labels_of_other_episodes_than_the_panels_are_refused(root):
    config, panel = configured(labels="judge", judges=JUDGES), Layout(root).reward_panel("reward_panel")
    label.make_labels(config, root)
    before = panel.read_bytes()
    write_lines(panel, list(read_lines(panel, "bootstrap"))[1:])
    try:
        with pytest.raises(ConfigError, match=r"labels of other tasks or base models.*`rlanything label`"):
            label.final_panels(config, Layout(root))
    finally:
        panel.write_bytes(before)
    assert label.final_panels(config, Layout(root))


def test_labels_are_made_again_as_the_same_bytes(root):
    config = configured(labels="judge", judges=JUDGES)
    place = Layout(root).labelled("reward_panel", "same")
    before = place.read_bytes() if place.is_file() else None
    label.make_labels(config, root)
    again = place.read_bytes()
    shutil.rmtree(place.parent)
    label.make_labels(config, root)
    assert again == place.read_bytes() == (before or again)


def test_the_trajectories_may_be_another_policys(root):
    config = configured(reward_policy={"path": "models/reward"})
    label.make_labels(config, root)
    lines = label.final_panels(config, Layout(root))["reward_panel"]["oracle"]
    ours = list(read_lines(Layout(root).reward_panel("reward_panel"), "bootstrap"))
    assert {x["trajectory"]["task_id"] for x in lines} == {x["trajectory"]["task_id"] for x in ours}
    assert [x["trajectory"] for x in lines] != [x["trajectory"] for x in ours]
    assert "labels" not in measured(config, root)
    tasks = Layout(root).tasks("reward_panel")
    before = tasks.read_bytes()
    tasks.write_bytes(b"".join(before.splitlines(keepends=True)[1:]))
    try:
        with pytest.raises(ConfigError, match="labels of other tasks or base models"):
            label.final_panels(config, Layout(root))
    finally:
        tasks.write_bytes(before)


def test_the_pipeline_labels_once_and_before_it_measures():
    config = configured(
        labels="judge", judges={**JUDGES, "run": {"path": "runs/full/seed-0/checkpoints/reward"}}
    )
    text = dvcfile.text(config)
    assert "  label:" in text
    assert "labels/reward_panel/same.jsonl.gz" in text
    assert "- runs/full\n" in text.split("  label:")[1].split("  evaluate:")[0]


def test_the_pipeline_depends_on_the_prompts_that_only_a_measurement_reads():
    own = {"path": "models/policy", "prompts": "solver_prompts"}
    folder = "- solver_prompts\n"
    labelled, evaluated = (
        dvcfile.text(configured(reward_policy=own)).split("  label:")[1].split("  evaluate:")
    )
    assert (folder in labelled, folder in evaluated) == (True, False)
    assert folder in dvcfile.text(configured(solver=own)).split("  evaluate:")[1]


def test_the_expert_solves_every_task_that_it_made(root):
    config = configured(solver_tries=2)
    tasks = read_tasks(Layout(root).tasks("in_domain"))
    found = solve(config, root, build.family(config), tasks, 1)
    assert found == {task.task_id: [1] for task in tasks}
    assert solve(config, root, build.family(config), [], 1) == {}


def test_a_task_that_the_expert_cannot_play_has_no_try(root, monkeypatch):
    config = configured(solver_tries=2)
    family = build.family(config)
    (task, *_) = read_tasks(Layout(root).tasks("in_domain"))

    def missing(*_):
        raise ValueError("comes without a solution")

    monkeypatch.setattr(family, "demonstrate", missing)
    assert solve(config, root, family, [task], 1) == {task.task_id: []}
    monkeypatch.setattr(family, "demonstrate", lambda *_: [])
    assert solve(config, root, family, [task], 1) == {task.task_id: [0, 0]}


def test_a_checkpoint_tries_every_task_as_often_as_it_is_told(root):
    config = configured(solver={"path": "models/policy"}, solver_tries=3)
    tasks = read_tasks(Layout(root).tasks("in_domain"))
    found = solve(config, root, build.family(config), tasks, 1)
    assert [len(tries) for tries in found.values()] == [3] * len(tasks)


@pytest.fixture
def tried(root, monkeypatch):
    """Plays the tries of a checkpoint: configuration, run seed -> trajectories."""

    def played(config, run_seed):
        found = []
        with monkeypatch.context() as patch:
            play = solving.play_panel
            patch.setattr(solving, "play_panel", lambda *given: found.extend(play(*given)) or found)
            solve(config, root, build.family(config), read_tasks(Layout(root).tasks("in_domain")), run_seed)
        return found

    return played


def test_a_checkpoint_tries_as_long_as_a_policy_is_measured(tried):
    config = configured(solver={"path": "models/policy"}, solver_tries=2, max_steps=3)
    assert config.rollout.max_steps > 3
    assert max(len(trajectory.steps) for trajectory in tried(config, 1)) == 3


def test_the_tries_of_a_checkpoint_repeat_and_every_run_has_draws_of_its_own(tried):
    config = configured(solver={"path": "models/policy"}, solver_tries=2)
    first = tried(config, 1)
    assert tried(config, 1) == first != tried(config, 2)
    assert len({(t.task_id, t.steps) for t in first}) > len({t.task_id for t in first}), (
        "and so has every try"
    )


def test_each_try_of_the_expert_has_a_seed_of_its_own(root, monkeypatch):
    config, seeds = configured(solver_tries=3), []
    family, (task, *_) = build.family(config), read_tasks(Layout(root).tasks("in_domain"))
    monkeypatch.setattr(family, "demonstrate", lambda _task, seed, _noise: seeds.append(seed) or [])
    assert solve(config, root, family, [task], 1) == {task.task_id: [0, 0, 0]}
    assert len(set(seeds)) == 3


def test_the_tasks_to_be_solved_are_those_of_the_run_that_is_measured(root, monkeypatch):
    config = configured()
    monkeypatch.setattr(evaluate, "pair_of", lambda *_: (config.model.policy, None))
    monkeypatch.setattr(evaluate, "_accepted", lambda *_: 1)
    monkeypatch.setattr(solving, "accepted_tasks", lambda run, iterations: [run, iterations])
    monkeypatch.setattr(solving, "solve", lambda _config, _root, _family, tasks, _seed: tasks)
    found = evaluate._results(config, root, "full", 1)
    assert found["solvable"] == [Layout(root).run("full", 1), config.train.iterations]


def test_a_solver_that_changes_while_it_tries_is_named(root, monkeypatch):
    shutil.copytree(root / "models" / "policy", root / "stronger")

    def changed(*_: object) -> dict[str, object]:
        file = root / "stronger" / "config.json"
        file.write_text(file.read_text() + " ")
        return {}

    monkeypatch.setattr(evaluate, "_measure", changed)
    with pytest.raises(ConfigError, match="stronger: it changed while it was in use"):
        evaluate.evaluate_arm(configured(solver={"path": "stronger"}), root, "base")


def test_a_measurement_asks_for_its_own_number_of_votes(root, monkeypatch):
    config, asked, generate = configured(votes=5), Counter(), ChatModel.generate
    assert config.judge.m != 5

    def watched(self, requests):
        asked.update((r.group, r.prompt_ids) for r in requests if r.group)
        return generate(self, requests)

    monkeypatch.setattr(ChatModel, "generate", watched)
    measured(config, root)
    assert set(asked.values()) == {5}


class Lost:
    """An environment whose episode is over after one command, without success."""

    def reset(self, task: Task, seed: int) -> Observation:
        return Observation("Go on.")

    def step(self, action: str) -> StepResult:
        return StepResult(Observation("That was all."), done=True, success=False)

    def close(self) -> None: ...


def test_an_expert_whose_episode_ends_without_success_has_solved_nothing(root, monkeypatch):
    config = configured(solver_tries=2)
    family, (task, *_) = build.family(config), read_tasks(Layout(root).tasks("in_domain"))
    monkeypatch.setattr(family, "environment", Lost)
    assert solve(config, root, family, [task], 1) == {task.task_id: [0, 0]}


@pytest.mark.parametrize("key", ["solver", "reward_policy"])
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, (None, None)),
        ({"temperature": 0.0}, (0.0, None)),
        ({"max_tokens": 3}, (None, 3)),
        ({"temperature": 0.3, "max_tokens": 5, "prompts": "solver_prompts"}, (0.3, 5)),
    ],
)
def test_who_only_acts_to_measure_samples_as_it_is_told_else_as_the_policy(
    root, monkeypatch, key, own, expected
):
    """What each request asks for, and whose templates are read."""
    config = configured(solver_tries=1, **{key: {"path": "models/policy", **own}})
    temperature, longest = (given if given is not None else default for given, default in zip(
        expected, (config.rollout.temperature, config.rollout.max_tokens), strict=True
    ))  # fmt: skip
    if "prompts" in own:
        shutil.copytree(root / config.model.prompts, root / own["prompts"], dirs_exist_ok=True)
    asked, folders, loaded = [], [], Prompts.load
    generate = ChatModel.generate

    def watched(self, requests):
        asked.extend((r.temperature, r.max_tokens) for r in requests)
        return generate(self, requests)

    monkeypatch.setattr(ChatModel, "generate", watched)
    monkeypatch.setattr(Prompts, "load", lambda folder, *a: folders.append(folder) or loaded(folder, *a))
    if key == "solver":
        tasks = read_tasks(Layout(root).tasks("in_domain"))[:1]
        solve(config, root, build.family(config), tasks, 1)
    else:
        label._panels(config, root, ImageStore(root / "images"))
    assert set(asked) == {(temperature, longest)}
    assert folders == [root / own.get("prompts", config.model.prompts)]


@pytest.mark.parametrize("key", ["solver", "reward_policy"])
def test_prompts_that_only_a_measurement_reads_are_checked_before_any_work(root, key):
    config = configured(**{key: {"path": "models/policy", "prompts": "experiments/prompts/missing"}})
    with pytest.raises(ConfigError, match="missing"):
        check.check(config, root, engine=False)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"solver": {"path": "x", "votes": 3}}, "evaluate.solver.votes"),
        ({"solver": {"path": "x", "max_tokens": 0}}, "evaluate.solver.max_tokens = 0"),
        ({"reward_policy": {"path": "x", "temperature": -1}}, "evaluate.reward_policy.temperature = -1"),
        ({"labels": "judge"}, "labels = 'judge': judges is empty"),
        ({"labels": "expert"}, "evaluate.labels = 'expert': Input should be 'oracle' or 'judge'"),
        ({"judges": {"a/b": {"path": "x"}}}, "judges.a/b: a judge names a file"),
        ({"judges": {"oracle": {"path": "x"}}}, "judges.oracle: a judge names a file"),
        (
            {"judges": {"a": {"path": "x", "vote": 3}}},
            "evaluate.judges.a.vote: unknown; did you mean 'votes'?",
        ),
        ({"judges": {"a": {"path": "x", "votes": 0}}}, "evaluate.judges.a.votes = 0"),
        ({"reward_policy": "models/policy"}, "evaluate.reward_policy"),
        ({"solver_tries": 0}, "evaluate.solver_tries = 0"),
    ],
)
def test_wrong_values_are_refused_with_their_key(changes, expected):
    with pytest.raises(ConfigError) as caught:
        configured(**changes)
    assert expected in str(caught.value)


def test_a_judges_prompts_are_checked_before_any_work(root):
    config = configured(judges={"a": {"path": "x", "prompts": "experiments/nowhere"}})
    with pytest.raises(ConfigError, match=r"experiments/nowhere/policy_system\.txt is missing"):
        check.check(config, root, engine=False)


def test_a_judge_that_labels_is_asked_with_the_label_prompts_of_its_folder(root):
    shutil.copytree(golden.ROOT / "experiments" / "prompts" / "embedded", root / "own")
    for name, text in {"label_system": "", "label": "$observation\nsound?"}.items():
        (root / "own" / f"{name}.txt").write_text(text)
    config = configured(labels="judge", judges={"own": {**JUDGES["same"], "prompts": "own"}, **JUDGES})
    label.make_labels(config, root)
    own, same = (
        list(read_lines(Layout(root).labelled("reward_panel", name), "label")) for name in ("own", "same")
    )
    assert [x["trajectory"] for x in own] == [x["trajectory"] for x in same]
    # A reward model of 32 hidden units answers to another question with another text.
    assert [x["labels"] for x in own] != [x["labels"] for x in same]


def test_programs_have_no_judge():
    data = golden.configuration().model_dump(by_alias=True)
    judge = {**data["judge"], "writes": "tests"}
    changed = {**data, "judge": judge, "evaluate": {**data["evaluate"], "labels": "judge", "judges": JUDGES}}
    with pytest.raises(ConfigError, match=r"evaluate\.labels = 'judge': with judge\.writes = tests"):
        parse(changed)
