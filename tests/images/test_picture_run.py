"""A whole run with models that read pictures: bootstrap, training that is killed and goes on, evaluation, replay.

The environment is a text game that shows a picture with every observation.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import golden_cases as golden
import pytest
from picture_run_cases import configured, patched, train_once
from rank_cases import two_ranks
from seen_run_cases import is_the_same_after_a_kill
from stage_cases import small
from torch.multiprocessing.spawn import ProcessException

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.engines.transformers import TransformersEngine
from rlanything.files.images import ImageStore, sizes
from rlanything.files.reader import read_objects
from rlanything.planning import checkpoints
from rlanything.repro.replay import Rules, replay
from rlanything.repro.stored import StoredRun
from rlanything.runs import build
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout, read_tasks
from rlanything.stages import evaluate, label, solving, train
from rlanything.stages.bootstrap.stage import make_models

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose games show pictures, trained once."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        root = tmp_path_factory.mktemp("pictures")
        train_once(root, configured())
        yield root


def trajectory_images(trajectory):
    """The names of the pictures that came with a recorded trajectory."""
    return {*trajectory["first_images"], *(name for step in trajectory["steps"] for name in step["images"])}


def test_the_run_keeps_the_pictures_that_its_rollouts_name_and_no_others(project):
    run = project / "runs" / "full" / "seed-0"
    record = run / "rollouts" / "iter_0001.jsonl.gz"
    named = set()
    for line in read_objects(record):
        trajectory = line["trajectory"]
        named |= trajectory_images(trajectory)
        for number, step in enumerate(trajectory["steps"]):
            assert len(step["prompt_images"]) == min(2, number + 1)
        assert all(len(judgement["images"]) == 2 for judgement in line["judgements"])
    store = ImageStore(run / "images")
    assert (
        {path.stem for path in store.folder.rglob("*.png")} == named == set(sizes(store.folder / record.name))
    )
    assert all(store.get(name) for name in named)


def test_both_models_learned_from_what_they_saw(project):
    first, last = read_objects(project / "runs" / "full" / "seed-0" / "metrics.jsonl")
    assert first["policy/rows"] > 0
    assert first["reward/rows"] > 0
    assert first["policy/grad_norm"] > 0
    assert first["reward/grad_norm"] > 0
    assert "policy/rows" not in last


def test_the_panels_keep_theirs_beside_the_base_models(project):
    lines = read_objects(project / "models" / "reward_panel.jsonl.gz")
    named = {name for line in lines for name in trajectory_images(line["trajectory"])}
    assert {path.stem for path in (project / "models" / "images").rglob("*.png")} == named


def test_the_final_checkpoints_can_see(project):
    for role in ("policy", "reward"):
        place = project / "runs" / "full" / "seed-0" / "checkpoints" / role
        assert json.loads((place / "preprocessor_config.json").read_text())["patch_size"] == 14


def test_it_is_evaluated_and_replayed_and_shown(project, monkeypatch, capsys):
    patched(monkeypatch)
    evaluate.evaluate_arm(configured(), project, "full")
    found = json.loads((project / "evaluation" / "full.json").read_text())
    assert set(found["seeds"]["0"]) >= {"in_domain", "out_of_domain", "rm_process"}
    run = StoredRun(project / "runs" / "full" / "seed-0")
    assert [r.problem for r in replay(run, Rules(configured(), "full", 0))] == [""]
    assert main(["--root", str(project), "rollouts", "show", "full"]) == 0
    assert "  picture " in capsys.readouterr().out


JUDGED = ("evaluate.labels=judge", "+evaluate.judges={one: {path: checkpoints/vl, votes: 1, max_tokens: 4}}")
ANOTHER = "+evaluate.reward_policy={path: runs/full/seed-0/checkpoints/policy, temperature: 0.7}"


@pytest.fixture
def asked(monkeypatch):
    """What models are asked from now on."""
    found, ask = [], TransformersEngine.generate

    def remembered(self, requests):
        found.extend(requests)
        return ask(self, requests)

    monkeypatch.setattr(TransformersEngine, "generate", remembered)
    return found


@pytest.mark.parametrize("another", [(), (ANOTHER,)])
def test_judges_that_label_steps_are_shown_the_same_pictures(project, monkeypatch, tmp_path, asked, another):
    """Also those of another policy's trajectories, whose pictures are kept beside their labels."""
    patched(monkeypatch)
    root = tmp_path / "labelled"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns(".rla", "provenance"))
    label.make_labels(configured(*JUDGED, *another), root)
    file, acted = root / "labels" / "reward_panel" / "one.jsonl.gz", [r for r in asked if r.max_tokens == 24]
    judged = [request for request in asked if request.max_tokens == 4]
    assert judged
    assert all(len(request.images) == 2 for request in judged)
    assert {len(request.images) for request in acted} == ({1, 2} if another else set())
    named = {name for line in read_objects(file) for name in trajectory_images(line["trajectory"])}
    kept = {path.stem for path in (root / "labels" / "images").rglob("*.png")}
    assert named
    assert kept == (named if another else set())
    if another:  # what the base policy saw is not needed
        shutil.rmtree(root / "models" / "images")
        evaluate.evaluate_arm(configured(*JUDGED, *another), root, "base")


def measured(root: Path) -> None:
    """One of two processes that make the panels, and label trajectories of another policy."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        make_models(configured(), root)
        label.make_labels(configured(*JUDGED, ANOTHER), root)


def test_two_processes_keep_the_pictures_that_either_has_seen(project, monkeypatch, tmp_path):
    patched(monkeypatch)
    root = tmp_path / "divided"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns("models", ".rla"))
    two_ranks(root, measured, root)
    for folder in ("models", "labels"):
        lines = read_objects(next((root / folder).rglob("*.jsonl.gz")))
        named = {name for line in lines for name in trajectory_images(line["trajectory"])}
        assert {path.stem for path in (root / folder / "images").rglob("*.png")} == named != set()
    kept = [sorted((place / "models" / "images").rglob("*.png")) for place in (project, root)]
    assert [path.name for path in kept[0]] == [path.name for path in kept[1]]


def test_a_solver_is_shown_the_pictures_of_the_tasks_that_it_tries(project, monkeypatch, asked):
    patched(monkeypatch)
    config = configured("+evaluate.solver.path=checkpoints/vl", "evaluate.solver_tries=2")
    (task, *_) = read_tasks(Layout(project).tasks("in_domain"))
    found = solving.solve(config, project, build.family(config), [task], 0)
    assert len(found[task.task_id]) == 2
    assert {len(request.images) for request in asked} == {1, 2}


@pytest.mark.long
def test_a_training_that_is_killed_before_it_publishes_gives_the_same_bytes(project, monkeypatch, tmp_path):
    patched(monkeypatch)
    is_the_same_after_a_kill(project / "runs" / "full" / "seed-0", configured(), tmp_path)


DIVIDED = ("train.devices=2", "train.strategy=fsdp")


def divided(root: Path, killed_at: int | None) -> None:
    """One of two processes, the first of which is killed before it publishes an iteration."""
    publish = RunFolder.publish

    def dying(self, iteration, write):
        if iteration == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
        publish(self, iteration, write)

    with pytest.MonkeyPatch.context() as patch:
        patched(patch)
        patch.setattr(RunFolder, "publish", dying)
        train.train_arm(configured(*DIVIDED), root, "full")


@pytest.mark.slow
def test_two_processes_give_the_numbers_of_one_although_they_are_killed_between(project, tmp_path):
    """Their weights are divided. Each samples from a copy that it has for itself."""
    root = tmp_path / "divided"
    shutil.copytree(project, root, symlinks=True, ignore=shutil.ignore_patterns("runs", ".rla", "provenance"))
    with pytest.raises(ProcessException):
        two_ranks(root, divided, root, 1)
    assert len(list(root.glob(".rla/live/*/full/seed-0/iterations/*"))) == 1
    two_ranks(root, divided, root, None)
    alone, together = (golden.kept(Layout(place).run("full", 0)) for place in (project, root))
    assert golden.first_difference(alone, together) is None
    store = [sorted(p.name for p in (place / "runs").rglob("*.png")) for place in (project, root)]
    assert store[0] == store[1] != []


def test_a_checkpoint_that_reads_text_alone_is_refused_before_any_work(project, tmp_path):
    root = tmp_path
    shutil.copytree(project / "checkpoints" / "vl", root / "checkpoints" / "vl")
    shutil.copytree(project / "checkpoints" / "vl", root / "checkpoints" / "blind")
    file = root / "checkpoints" / "blind" / "config.json"
    config = json.loads(file.read_text())
    del config["vision_config"]
    file.write_text(json.dumps(config))
    checkpoints.check(configured("+evaluate.solver.path=checkpoints/later"), root)  # a training may make it
    for key, role in (
        ("model.policy", "policy"),
        ("+evaluate.solver", "policy"),
        ("+evaluate.reward_policy", "policy"),
        ("+evaluate.judges.one", "reward"),
    ):
        labels = ["evaluate.labels=judge"] if "judges" in key else []
        words = rf"{key.lstrip('+')}\.path = .*images\.{role} = 2, and this checkpoint reads text alone"
        with pytest.raises(ConfigError, match=words):
            checkpoints.check(configured(*labels, f"{key}.path=checkpoints/blind"), root)


@pytest.mark.parametrize("engine", ["vllm", "vllm_servers"])
def test_a_checkpoint_that_vllm_shows_no_pictures_is_refused_before_any_work(engine, project, tmp_path):
    shutil.copytree(project / "checkpoints", tmp_path / "checkpoints")
    checkpoints.check(configured(f"engine={engine}"), tmp_path)
    file = tmp_path / "checkpoints" / "vl" / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "architectures": ["Glm4vForCausalLM"]}))
    with pytest.raises(
        ConfigError, match=r"model\.policy\.path = .*Glm4vForCausalLM: vLLM is given pictures for"
    ):
        checkpoints.check(configured(f"engine={engine}"), tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ["engine=native"],
            r"images\.policy = 2: only engine=transformers, vllm and vllm_servers read pictures",
        ),
        (["train.staleness=1", "executor=processes"], r"TransformersEngine samples in the trainer's process"),
        (["judge.writes=tests"], r"images\.policy = 2: does not go with judge\.writes"),
        (["model.context=chat"], r"images\.policy = 2: with context = chat .* needs context = history"),
        (["model.images.policy=-1"], r"model\.images\.policy"),
        (["model.images.plicy=1"], r"did you mean 'model\.images\.policy'"),
    ],
)
def test_what_does_not_go_with_pictures_is_refused_by_its_key(change, words):
    with pytest.raises(ConfigError, match=words):
        configured(*change)


def test_embedded_models_are_shown_no_pictures():
    with pytest.raises(ConfigError, match=r"images\.reward = 1: embedded models read text alone"):
        small("model.images.reward=1", "model.context=history", "engine=transformers")


def test_pictures_go_with_samples_of_the_iteration_before():
    ahead = configured("engine=vllm_servers", "train.staleness=1", "executor=processes")
    assert (ahead.train.staleness, ahead.model.images.policy) == (1, 2)
