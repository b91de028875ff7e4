"""What a start finds: spent minutes, a raised `confirm`, crashes on fresh seeds, and studies under another key."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import pytest
from optuna.trial import TrialState
from sweep_cases import ROOT, declared, make, play, write_results

from rlanything.config import Config, load
from rlanything.core.errors import ConfigError
from rlanything.files.records import write_json
from rlanything.planning import compose, pipeline
from rlanything.runs.fingerprint import made_from
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.results.publish import publish
from rlanything.sweep.trials import worker as worker_module
from rlanything.sweep.trials.board import Board
from rlanything.sweep.trials.claims import Claims
from rlanything.sweep.trials.earlier import with_other_seeds
from rlanything.sweep.trials.folder import TrialFolder
from rlanything.sweep.trials.fresh import ERROR
from rlanything.sweep.trials.inputs import Inputs
from rlanything.sweep.trials.jobs import FreshJob
from rlanything.sweep.trials.key import Key, other_study
from rlanything.sweep.trials.status import status_line
from rlanything.sweep.trials.worker import Worker

GRID = {"sampler": "grid", "space": {"signals.lambda": [0.25, 0.5, 1.0, 2.0]}, "confirm": 0}


def worker(board: Board) -> Worker:
    """One that is asked for its next trial, and never starts it."""
    return Worker(board, None, Claims(board.folder / "claims"), 1, lambda text: None, lambda: None)


def take(board: Board, seconds: float, state: TrialState = TrialState.COMPLETE) -> int | None:
    """What a worker does with its next trial, with a drawn result; its number."""
    trial = worker(board).queue._new([])
    if trial is None:
        return None
    write_results(board.trial(trial.number), board.sweep, board.sets(trial.number), range(board.sweep.seeds))
    board.study.note(trial.number, seconds=seconds)
    found = board.objectives(trial.number) if state == TrialState.COMPLETE else None
    board.study.tell(trial.number, found, state)
    return trial.number


@pytest.mark.parametrize("changes", [GRID, {"confirm": 0}])
def test_spent_minutes_end_a_sweep_after_both_baselines(tmp_path, changes):
    board = make(declared(**changes, budget={"minutes": 1.0}), tmp_path)
    assert take(board, 70.0) == 0
    assert not board.is_over()
    assert status_line(board, {}, 1).endswith("about 1 min left")
    assert take(board, 70.0) == 1
    assert take(board, 70.0) is None
    assert board.is_over()
    states = [t.state.name for t in board.study.trials()]
    assert states[:2] == ["COMPLETE", "COMPLETE"]
    assert set(states[2:]) <= {"WAITING"}
    (tmp_path / "case.yaml").write_text("space: {}\n")
    publish(board, tmp_path / "case.yaml", tmp_path, None)
    assert "0 (paper)" in (tmp_path / "sweeps" / "case" / "report.md").read_text()


def test_a_grid_that_was_cut_short_goes_on_with_more_minutes(tmp_path):
    board = make(declared(**GRID, budget={"minutes": 1.0}), tmp_path)
    while take(board, 40.0) is not None:
        pass
    assert [t.state.name for t in board.study.trials()] == ["COMPLETE"] * 2 + ["WAITING"] * 2
    more = make(declared(**GRID, budget={"minutes": 60.0}), tmp_path)
    assert [take(more, 40.0) for _ in range(3)] == [2, 3, None]
    assert more.is_over()


def test_a_baseline_that_crashed_is_tried_again_when_the_minutes_are_spent(tmp_path):
    sweep = declared(**GRID, budget={"minutes": 1.0})
    board = make(sweep, tmp_path)
    assert take(board, 70.0, TrialState.FAIL) == 0
    assert take(board, 70.0) == 1
    assert board.is_over()
    again = make(sweep, tmp_path)
    assert take(again, 70.0) == 4
    assert take(again, 70.0) is None
    assert again.is_over()
    assert again.baselines() == {"default": 1, "paper": 4}


def test_fresh_seeds_can_be_more_the_next_time(tmp_path):
    board = make(declared(confirm=2, budget={"trials": 4}), tmp_path)
    play(board)
    assert board.is_over()
    more = make(declared(confirm=6, budget={"trials": 4}), tmp_path)
    winner = more.best().number
    assert more.to_confirm() == more.candidates()
    assert not more.is_over()
    assert more.fresh.measured(winner) is None
    folder = TrialFolder(more.fresh.folder(winner), more.sweep, 9)
    compose.write(folder.path / "params.yaml", ["train.seeds=9"], ROOT)
    assert [c[0] for c in folder.commands()] == ["train", "evaluate"]
    evaluation = folder.path / "evaluation" / "full.json"
    assert evaluation.is_file()
    more.fresh.reopen(winner)
    assert not evaluation.exists(), "it has fewer seeds"
    play(more)
    assert more.is_over()
    assert more.fresh.measured(winner).panels["full"]["in_domain"].seeds == (3, 4, 5, 6, 7, 8)
    fewer = make(declared(confirm=1, budget={"trials": 4}), tmp_path)
    assert fewer.is_over()
    assert fewer.fresh.measured(winner).panels["full"]["in_domain"].seeds == (3,)


def test_a_folder_with_other_values_is_no_folder_of_the_trial(tmp_path):
    sweep = declared(arms=["policy"])
    root = tmp_path / "project"
    root.mkdir()
    for name in ("experiments", "envs", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    inputs = Inputs.of(root, root / "params.yaml", tmp_path / "inputs")
    folder, point = TrialFolder(tmp_path / "0002", sweep, 1), {"signals.lambda": 0.25}
    folder.prepare(inputs, point)
    TrialFolder(folder.path, sweep, 2).prepare(inputs, point)  # more seeds are the same trial
    before = (folder.path / "params.yaml").read_bytes()
    with pytest.raises(
        ConfigError, match=r"params\.yaml: signals\.lambda = 0\.25, and this trial has 0\.5; remove .*/0002"
    ):
        folder.prepare(inputs, {"signals.lambda": 0.5})
    assert (folder.path / "params.yaml").read_bytes() == before


def crash(found: Worker, number: int, error: str) -> None:
    job = FreshJob(found.board, number)
    job.folder.path.mkdir(parents=True, exist_ok=True)
    job.folder.log.write_text(f"$ rlanything train\n{error}\n")
    assert found.claims.take(job.claim)
    found.jobs.append(job)
    found._crashed(job, error)


def test_a_crash_on_fresh_seeds_is_published_and_tried_again_with_the_next_start(tmp_path):
    board = make(declared(confirm=2, budget={"trials": 4}), tmp_path)
    while take(board, 60.0) is not None:
        pass
    first, *others = board.to_confirm()
    assert others
    crash(worker(board), first, "no memory <left>")
    assert board.to_confirm() == others
    for number in others:
        write_results(board.fresh.folder(number), board.sweep, board.sets(number), range(5))
    assert board.is_over()
    (tmp_path / "case.yaml").write_text("space: {}\n")
    publish(board, tmp_path / "case.yaml", tmp_path, None)
    there = tmp_path / "sweeps" / "case"
    assert f"- trial {first} on fresh seeds: `no memory <left>`" in (there / "report.md").read_text()
    assert f"trial {first} on fresh seeds: no memory &lt;left&gt;" in (there / "page.html").read_text()
    assert (there / "fresh" / f"{first:04d}" / ERROR).read_text() == "no memory <left>"
    assert "no memory" in (there / "fresh" / f"{first:04d}" / "log.txt").read_text()
    worker(board)
    assert board.to_confirm() == [first]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_room_is_no_crash(tmp_path, number):
    board = make(declared(confirm=2, budget={"trials": 4}), tmp_path)
    while take(board, 60.0) is not None:
        pass
    candidates = board.to_confirm()
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        crash(worker(board), candidates[0], f"rlanything: {os.strerror(number)}: runs/full. Free some space")
    assert caught.value.errno == number
    assert board.to_confirm() == candidates


def key(**changes: object) -> Key:
    config = {"signals": {"lambda": 0.5}, "train": {"iterations": 2}}
    files = {"dvc.yaml": "aa", "rlanything/loop/step.py": "bb"}
    return Key(**{"config": config, "files": files, "inputs": {}, **changes})


def test_another_study_of_the_same_name_is_not_passed_over_in_silence(tmp_path):
    first = key()
    assert other_study(tmp_path, "case", first) is None
    place = tmp_path / f"case-{first.short}"
    first.write(place)
    (tmp_path / "case-two-01234567").mkdir()
    assert other_study(tmp_path, "case", first) is None
    models = {f"models/{name}": name for name in "abcd"}
    files = {"dvc.yaml": "aa", "rlanything/loop/step.py": "cc"}
    second = key(config={"signals": {"lambda": 1.0}}, files=files, inputs=models)
    assert second.short != first.short
    assert other_study(tmp_path, "case", second) == (
        f"does not go on with {place}, a study of the same name, which differs: signals.lambda: there 0.5, here 1.0; "
        "train.iterations: there 2, here nothing; models/a: only here; models/b: only here; models/c: only here; "
        "and 2 more"
    )


def of_seeds(seeds: int, **changes: object) -> Key:
    return key(config={"signals": {"lambda": 0.5}, "train": {"iterations": 2, "seeds": seeds}}, **changes)


def test_another_number_of_seeds_tries_the_points_again_and_takes_the_runs_over(tmp_path):
    before, now = of_seeds(3), of_seeds(4)
    place = tmp_path / f"case-{before.short}"
    first = make(declared(confirm=2, budget={"trials": 5}), place, name=place.name)
    play(first)
    before.write(place)
    found = with_other_seeds(tmp_path, "case", now, None)
    sweep = declared(seeds=4, confirm=2, budget={"trials": 4}, startup=1, seed=7)
    board = make(sweep, tmp_path / "now", points=found.points(sweep))
    play(board)
    assert [board.sets(n) for n in range(4)] == [first.sets(n) for n in range(4)], "no more than the budget"
    for trial in first.complete():
        assert found.runs(first.sets(trial.number))[0] == first.results(trial.number)
    assert place / "fresh" / f"{first.best().number:04d}" in found.runs(first.sets(first.best().number))
    assert found.runs({"signals.lambda": 9.0}) == []
    assert found.points(declared(space={"judge.m": [1, 3]})) == [], "of another space"


@pytest.mark.parametrize("changes", [{"files": {"dvc.yaml": "bb"}}, {"inputs": {"models/a": "a"}}])
def test_a_study_that_differs_in_more_than_seeds_gives_nothing(tmp_path, changes):
    other = of_seeds(3, **changes)
    place = tmp_path / f"case-{other.short}"
    play(make(declared(confirm=0, budget={"trials": 2}), place, name=place.name))
    other.write(place)
    assert with_other_seeds(tmp_path, "case", of_seeds(4), None) is None
    (place / "key.json").write_text("{")
    assert with_other_seeds(tmp_path, "case", of_seeds(4), None) is None


@pytest.mark.parametrize("changed", ["code", "inputs", None])
def test_only_runs_of_the_same_code_and_inputs_are_taken_over(tmp_path, changed):
    sweep = declared(seeds=2)
    place, earlier = tmp_path / "0000", tmp_path / "earlier"
    compose.write(place / "params.yaml", ["train.seeds=2"], ROOT)
    config = load(place / "params.yaml")
    origin = asdict(made_from(config, place, "full"))
    write_results(earlier, sweep, {}, range(3), lambda _: 0.5)
    taken = TrialFolder(place, sweep, 2)
    assert not taken.is_made_like(earlier, "full"), "it has no record"
    write_json(Layout(earlier).provenance("full"), {**origin, **({changed: {"a": "b"}} if changed else {})})
    assert taken.is_made_like(earlier, "full") == (changed is None)
    taken.adopt(earlier, "full")
    copied = sorted(p.parent.name for p in place.rglob("finished"))
    assert copied == ["seed-0", "seed-1"], "no more seeds than it has"


JUDGED = {
    "seeds": 2,
    "arms": ["full", "step_only"],
    "objectives": ["full.in_domain"],
    "overrides": ["+arm@arms.step_only=step_only"],
}
"""`step_only` is judged by the reward model of `full`."""


def weigh(run: Path, text: str) -> None:
    """Give a run the weights of a reward model."""
    (run / "checkpoints" / "reward").mkdir(parents=True, exist_ok=True)
    (run / "checkpoints" / "reward" / "model.safetensors").write_text(text)


@pytest.mark.parametrize("other", [None, 1])
def test_an_arm_that_is_judged_by_another_is_not_trained_again(tmp_path, monkeypatch, other):
    """Its origin names the weights of all seeds of that arm, so it is looked for when these are there.

    other: a seed whose reward model is another one here.
    """
    board = make(declared(**JUDGED, confirm=1, budget={"trials": 4}), tmp_path / "sweep")
    play(board, confirm=False)
    number = board.to_confirm()[0]
    for seed in range(2):
        weigh(board.results(number) / "runs" / "full" / f"seed-{seed}", f"seed {seed}")
    job = FreshJob(board, number)
    layout, place = Layout(job.folder.path), job.folder.path
    overrides = [*JUDGED["overrides"], "train.seeds=3"]
    compose.write(place / "params.yaml", overrides, ROOT)
    config, started = load(place / "params.yaml"), []
    monkeypatch.setattr(worker_module, "missing_inputs", lambda _: [])
    monkeypatch.setattr(Worker, "_start", lambda _, job, root, command: started.append(command))
    worker(board)._step(job)
    assert started == [("train", "--arm", "full")]
    assert finished(config, place, "full") == [0, 1]
    for seed in range(3):
        weigh(layout.run("full", seed), "other" if seed == other else f"seed {seed}")
    for file in (layout.provenance("full"), layout.evaluation("full")):
        file.parent.mkdir()
        file.write_text("{}")
    worker(board)._step(job)
    assert started[1:] == [("train", "--arm", "step_only")]
    assert finished(config, place, "step_only") == [seed for seed in range(2) if seed != other]


def finished(config: Config, place: Path, arm: str) -> list[int]:
    """The seeds that a training of the arm would find finished."""
    key = made_from(config, place, arm).key
    return [seed for seed in range(3) if RunFolder(Layout(place).live(key, arm, seed)).finished.is_dir()]


@pytest.mark.parametrize("changed", ["inputs", None])
def test_runs_of_a_judged_arm_are_of_the_same_inputs_whatever_its_reward_model(tmp_path, changed):
    """A study with another number of seeds has other weights of the arm in `reward_from`: more of them, or fewer."""
    place, earlier = tmp_path / "0000", tmp_path / "earlier"
    compose.write(place / "params.yaml", [*JUDGED["overrides"], "train.seeds=2"], ROOT)
    origin = asdict(made_from(load(place / "params.yaml"), place, "step_only"))
    origin["inputs"] |= {"runs/full/seed-0/checkpoints/reward/model.safetensors": "aa"}
    origin["inputs"] |= {"models/other": "bb"} if changed else {}
    write_json(Layout(earlier).provenance("step_only"), origin)
    assert TrialFolder(place, declared(**JUDGED), 2).is_made_like(earlier, "step_only") == (changed is None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "key.json: not JSON"),
        ("[]", "key.json: expected a JSON object"),
        ("{}", "key.json: config: Field required"),
        ('{"config": {}, "files": {"a": 1}, "inputs": {}}', "key.json: files.a: "),
    ],
)
def test_a_damaged_key_of_another_study_is_told_and_ends_nothing(tmp_path, text, says):
    place = tmp_path / "case-01234567"
    place.mkdir()
    (place / "key.json").write_text(text)
    said = other_study(tmp_path, "case", key())
    assert f"does not go on with {place}, " in said
    assert says in said
    with pytest.raises(ConfigError, match=re.escape(says)):
        Key.read(place / "key.json")


def test_the_key_is_that_of_its_readable_parts(tmp_path):
    first = key()
    first.write(tmp_path)
    written = json.loads((Path(tmp_path) / "key.json").read_text())
    assert Key(**written).short == first.short
    assert first.differences(Key.read(tmp_path / "key.json")) == []
    for part in ("config", "files", "inputs", "packages"):
        assert key(**{part: {"x": "y"}}).short != first.short


def test_another_version_of_a_package_is_another_study_and_is_named(tmp_path, monkeypatch):
    sweep, inputs = declared(), Inputs.of(ROOT, ROOT / "params.yaml", tmp_path)
    base = compose_base(sweep, ROOT)
    before = Key.of(sweep.arms, base, inputs)
    assert before.packages["torch"] == metadata.version("torch")
    kept = {name: "0.0.1" if name == "torch" else version for name, version in before.packages.items()}
    monkeypatch.setattr(pipeline, "versions", lambda _: kept)
    now = Key.of(sweep.arms, base, inputs)
    assert now.short != before.short
    assert now.differences(before) == [f'torch: there "{before.packages["torch"]}", here "0.0.1"']


def test_other_code_outside_of_the_project_is_another_study_and_is_named(
    tmp_path, tmp_path_factory, monkeypatch
):
    place = tmp_path_factory.mktemp("outside")
    (place / "sweep_outside.py").write_text("")
    monkeypatch.syspath_prepend(place)
    sweep, inputs = declared(), Inputs.of(ROOT, ROOT / "params.yaml", tmp_path)
    base = compose_base(sweep, ROOT)
    base = {**base, "env": {"_target_": "sweep_outside.Family"}}
    before = Key.of(sweep.arms, base, inputs)
    (place / "sweep_outside.py").write_text("another = 1\n")
    now = Key.of(sweep.arms, base, inputs)
    assert now.short != before.short
    (found,) = now.differences(before)
    assert "sweep_outside.py" in found


def test_a_key_of_older_code_without_packages_is_read(tmp_path):
    older = asdict(key())
    del older["packages"]
    (tmp_path / "key.json").write_text(json.dumps(older))
    assert Key.read(tmp_path / "key.json") == key()


def test_a_trial_has_what_its_configuration_names_in_the_project(tmp_path):
    project, path = tmp_path / "project", tmp_path / "trial"
    for name in ("experiments", "envs", "dvc.yaml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).symlink_to(ROOT / name)
    (project / "weights" / "strong").mkdir(parents=True)
    sweep = declared(overrides=["scale=smoke", "+evaluate.solver.path=weights/strong"])
    inputs = Inputs.of(project, project / "params.yaml", tmp_path / "inputs")
    TrialFolder(path, sweep, 1).prepare(inputs, {"signals.lambda": 1.0})
    assert (path / "weights" / "strong").samefile(project / "weights" / "strong")
