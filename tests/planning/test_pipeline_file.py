"""What this project reads from dvc.yaml is what DVC reads from it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from dvc.repo import Repo
from stage_cases import ROOT

from rlanything.checks import stages
from rlanything.cli import main
from rlanything.config import parse
from rlanything.core.errors import ConfigError
from rlanything.loop.prompts import NAMES
from rlanything.planning import dvcfile
from rlanything.planning.pipeline import Pipeline, look_up
from rlanything.sweep.dependencies import dependencies, options

SWEEPS, CHECKS = ROOT / "experiments" / "sweep", ROOT / "experiments" / "check"
STAGES = (
    "tasks",
    "bootstrap",
    "train@outcome",
    "train@full",
    "evaluate@base_cooled",
    "evaluate@policy_reward",
)


@pytest.fixture(scope="module")
def data():
    return yaml.safe_load((ROOT / "params.yaml").read_text())


@pytest.fixture(scope="module")
def by_dvc():
    with Repo(str(ROOT)) as repo:
        return {stage.name: stage for stage in repo.stage.collect("dvc.yaml", recursive=False)}


@pytest.mark.parametrize("name", STAGES)
def test_the_parameters_are_those_that_dvc_sees(name, data, by_dvc):
    theirs = {key for dep in by_dvc[name].deps if hasattr(dep, "params") for key in dep.params}
    ours = Pipeline(ROOT).params(name, data)
    assert set(ours) == theirs
    assert all(value == look_up(data, key) for key, value in ours.items())


def test_the_code_is_that_of_the_environment_and_engine_that_the_configuration_names(data):
    other = {**data, "env": {"_target_": "envs.coding.family.CodingFamily"}}
    other["engine"] = {"_target_": "rlanything.engines.transformers.TransformersEngine"}
    files = {path.relative_to(ROOT).as_posix() for path in Pipeline(ROOT).files(["train@full"], other)}
    assert {"envs/coding/family.py", "rlanything/engines/transformers.py"} <= files
    assert not [name for name in files if name.startswith("envs/alfworld")]
    assert "rlanything/engines/native.py" not in files


@pytest.mark.parametrize("name", STAGES)
def test_the_files_are_those_that_dvc_sees_and_no_stage_makes(name, data, by_dvc):
    theirs = {dep.def_path for dep in by_dvc[name].deps if not hasattr(dep, "params")}
    made = ("data/", "models", "runs/", "evaluation/")
    kept = [ROOT / path for path in theirs if not path.startswith(made)]
    ours = Pipeline(ROOT).files([name], data)
    assert all(any(file == place or file.is_relative_to(place) for place in kept) for file in ours)
    assert all(any(file == place or file.is_relative_to(place) for file in ours) for place in kept)


@pytest.mark.parametrize("context", NAMES)
def test_a_training_depends_on_the_prompts_of_its_context(data, context):
    config = parse({**data, "model": {**data["model"], "context": context}})
    stages = yaml.safe_load(dvcfile.text(config))["stages"]
    for stage in ("train", "evaluate"):
        found = [Path(dep).stem for dep in stages[stage]["do"]["deps"] if dep.startswith("${model.prompts}/")]
        named = [name for name in found if not name.startswith("${")]
        assert named == [name for name in NAMES[context] if name not in ("critic", "critic_step", "adapter")]
        assert "model.context" in stages[stage]["do"]["params"]


def test_an_arm_of_ones_own_depends_on_what_the_full_one_does(data):
    pipeline = Pipeline(ROOT)
    own, full = (set(pipeline.params(f"train@{arm}", data)) for arm in ("mine", "full"))
    assert own ^ full == {"arms.mine", "arms.full"}
    assert pipeline.files(["train@mine"], data) == pipeline.files(["train@full"], data)


@pytest.mark.parametrize(
    "name", ["x;touch here", "$(id)", "a b", "-x", "~x", "x&", "`id`", "${seed}", "x'y", "votes_0.85"]
)
def test_an_arm_that_is_more_than_a_word_reaches_no_command(tmp_path, data, name, capsys):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({**data, "arms": {name: data["arms"]["full"]}}))
    for words in (["check", str(tmp_path / "params.yaml")], ["pipeline"]):
        assert main(["--root", str(tmp_path), "config", *words]) == 2
        assert f"arms.{name}: an arm is a word in commands" in capsys.readouterr().err
    assert not (tmp_path / "dvc.yaml").exists()


def test_two_arms_that_differ_in_capitals_alone_are_refused(tmp_path, data, capsys):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    arms = data["arms"] | {"Full": dict(data["arms"]["full"])}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump({**data, "arms": arms}))
    assert main(["--root", str(tmp_path), "config", "check", str(tmp_path / "params.yaml")]) == 2
    assert "arms.full: differs from arms.Full in capitals alone" in capsys.readouterr().err


def test_files_are_what_lies_in_the_places_that_a_stage_names(tmp_path, data):
    (tmp_path / "code").mkdir()
    for name in ("a.py", "b.json", "README.md"):
        (tmp_path / "code" / name).write_text("one")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "made").write_text("")
    (tmp_path / "dvc.yaml").write_text(
        "stages: {bootstrap: {outs: [models]}, train: {deps: [code, models/made], outs: [{runs/x: {}}]}}"
    )
    assert Pipeline(tmp_path).files(["train"], data) == [
        tmp_path / "code" / "a.py",
        tmp_path / "code" / "b.json",
    ]


def test_the_default_configuration_depends_on_no_other_folder_of_weights(data):
    assert dvcfile.text(parse(data), ROOT) == (ROOT / "dvc.yaml").read_text()


def test_a_folder_of_weights_that_no_stage_makes_is_a_dependency(tmp_path, data):
    outside = tmp_path / "outside"
    for place in (
        outside,
        tmp_path / "project" / "weights" / "judge",
        tmp_path / "project" / "models" / "reward",
    ):
        place.mkdir(parents=True)
        (place / "model.safetensors").write_text("first")
    project = tmp_path / "project"
    model = {
        **data["model"],
        "embedded": None,
        "policy": {"path": str(outside)},
        "adapter": {"path": "Qwen/Qwen3-4B"},
    }
    measured = {
        "labels": "judge",
        "judges": {"strong": {"path": "weights/judge"}},
        "solver": {"path": str(outside)},
    }
    config = parse({**data, "model": model, "evaluate": {**data["evaluate"], **measured}})
    (project / "dvc.yaml").write_text(text := dvcfile.text(config, project))
    stages = yaml.safe_load(text)["stages"]
    default = yaml.safe_load(dvcfile.text(parse(data), project))["stages"]
    new = [dep for dep in stages["bootstrap"]["deps"] if dep not in default["bootstrap"]["deps"]]
    assert new == [str(outside)], "models/ is made by the stage, a name on the hub is no file"
    assert "weights/judge" in stages["label"]["deps"]
    assert str(outside) in stages["evaluate"]["do"]["deps"]
    values = config.model_dump(mode="json", by_alias=True)
    assert outside / "model.safetensors" in Pipeline(project).files(["bootstrap"], values)
    (project / "dvc.yaml").write_text(dvcfile.text(parse(data), project))
    by_override = Pipeline(project).files(["bootstrap"], values)
    assert outside / "model.safetensors" in by_override, "of values that dvc.yaml was not written for, too"
    assert outside / "model.safetensors" in Pipeline(project).files(["evaluate@base"], values)
    (project / "dvc.yaml").write_text(text)
    (project / "params.yaml").write_text(yaml.safe_dump(values))
    Repo.init(str(project), no_scm=True).close()
    before = _hash_by_dvc(project, "bootstrap", outside)
    (outside / "model.safetensors").write_text("other")
    assert _hash_by_dvc(project, "bootstrap", outside) != before


def _hash_by_dvc(project: Path, name: str, folder: Path) -> str:
    """The hash that DVC gives to a folder that a stage depends on."""
    with Repo(str(project)) as repo:
        (stage,) = (s for s in repo.index.stages if s.name == name)
        (dep,) = (dep for dep in stage.deps if dep.def_path == str(folder))
        return dep.get_hash().value


@pytest.mark.parametrize("text", ["[" * 10_000, "stages: 1", "a: &a [1]\nb: *a", "- 1"])
def test_a_pipeline_that_cannot_be_read_is_named(tmp_path, text):
    (tmp_path / "dvc.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"dvc\.yaml: "):
        Pipeline(tmp_path)


def test_a_folder_without_a_pipeline_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"dvc\.yaml: no such file"):
        Pipeline(tmp_path)


@pytest.fixture
def copy(tmp_path):
    """What DVC sees of this project, in a git repository of its own."""
    for name in ("dvc.yaml", "params.yaml", ".dvcignore", ".gitignore"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in (".dvc/config", "sweeps/.gitignore"):
        (tmp_path / name).parent.mkdir()
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "experiments", tmp_path / "experiments")
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


@pytest.mark.long
def test_make_adds_a_sweep_as_a_stage_behind_the_base_models(copy):
    """DVC overlooks folders that git seems to ignore, so the whole project is searched, as `dvc repro` does."""
    stage, before = declared(
        copy, "sweep", "sweeps", "lambda", times=2
    )  # there is one, however often it is declared
    assert stage.cmd == "python -m rlanything sweep experiments/sweep/lambda.yaml"
    (out,) = stage.outs
    assert (out.def_path, out.use_cache, out.persist) == ("sweeps/lambda", True, True)
    assert before == {"tasks", "bootstrap"}
    assert {dep.def_path for dep in stage.deps} == set(dependencies(SWEEPS / "lambda.yaml", ROOT))


@pytest.mark.parametrize("sweep", sorted(p.stem for p in SWEEPS.glob("*.yaml")))
def test_a_sweep_depends_on_its_inputs_and_code(sweep):
    needs = dependencies(SWEEPS / f"{sweep}.yaml", ROOT)
    assert depends(needs, "data/tasks", "models", "experiments")
    assert depends(needs, "rlanything/learn/losses.py", "rlanything/engines/native.py")
    assert depends(needs, "rlanything/sweep/results/page.html.jinja", "envs/alfworld/family.py")
    for other in ("rlanything/report/document.py", "rlanything/repro/replay.py", "envs/coding/family.py"):
        assert not depends(needs, other)


@pytest.mark.integration
def test_a_sweep_that_fails_leaves_the_published_one_where_it_was(copy):
    (line,) = [line for line in recipe("sweep", "lambda").splitlines() if "dvc stage add" in line]
    (kept,) = re.findall(r" (--outs\S* sweeps/lambda) ", line)
    (copy / "sweeps" / "lambda").mkdir()
    (copy / "sweeps" / "lambda" / "report.md").write_text("published")
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
    }
    add = f"cd sweeps && dvc stage add --quiet --name lambda --wdir .. {kept} false"
    subprocess.run(["bash", "-euc", add], cwd=copy, env=env, check=True, capture_output=True)
    run = ["dvc", "repro", "sweeps/dvc.yaml:lambda"]
    done = subprocess.run(run, cwd=copy, env=env, check=False, capture_output=True, text=True)
    assert "failed to run: false" in done.stderr
    assert (copy / "sweeps" / "lambda" / "report.md").read_text() == "published"


def test_make_does_the_same_for_every_sweep():
    assert recipe("sweep", "band") == recipe("sweep", "lambda").replace("lambda", "band")


@pytest.mark.long
def test_make_adds_a_ladder_as_a_stage_whose_results_git_keeps(copy):
    """Git has the results of checks, and DVC does not take what git has into its cache."""
    shutil.copytree(ROOT / "checks" / "ladder", copy / "checks" / "ladder")
    subprocess.run(["git", "add", "checks"], cwd=copy, check=True)
    stage, before = declared(copy, "check", "checks", "ladder", times=1)
    assert stage.cmd == "python -m rlanything check ladder experiments/check/ladder.yaml"
    (out,) = stage.outs
    assert (out.def_path, out.use_cache, out.persist) == ("checks/ladder", False, True)
    assert before == {"tasks", "bootstrap"}
    assert {dep.def_path for dep in stage.deps} == set(stages.dependencies(CHECKS / "ladder.yaml", ROOT))


@pytest.mark.parametrize("check", ["fitness", "ladder", "written_tests"])
def test_a_ladder_depends_on_its_inputs_and_code(check):
    needs, coding = stages.dependencies(CHECKS / f"{check}.yaml", ROOT), check == "written_tests"
    assert depends(needs, "data/tasks", "models", "experiments")
    assert depends(needs, "rlanything/learn/losses.py", "rlanything/engines/native.py")
    assert depends(needs, "rlanything/checks/ladder/verdict.py", "rlanything/report/results/power.py")
    assert depends(needs, "envs/coding/family.py" if coding else "envs/alfworld/family.py")
    others = ("rlanything/repro/replay.py", "rlanything/checks/study/verdict.py")
    for other in (*others, "envs/alfworld/family.py" if coding else "envs/coding/family.py"):
        assert not depends(needs, other)


@pytest.mark.long
def test_make_does_the_same_for_every_ladder():
    files = r"experiments/check/ladder\b|checks/ladder\b|checks/dvc.yaml:ladder|--name ladder\b"
    wanted = re.sub(files, lambda found: found[0].replace("ladder", "fitness"), recipe("check", "ladder"))
    assert recipe("check", "fitness") == wanted


def test_make_asks_the_python_of_its_own_environment_which_kind_a_check_is(tmp_path):
    """Also where no environment is active."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "python").write_text("#!/bin/sh\necho pool\n")
    (place / "python").chmod(0o755)
    command = ["make", "-n", "check", "CHECK=ladder", f"VENV={tmp_path}"]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert "rlanything check pool experiments/check/ladder.yaml" in said


@cache
def recipe(target: str, name: str) -> str:
    """What `make TARGET` would run, a command a line."""
    command = ["make", "-n", target, f"{target.upper()}={name}"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return re.sub(r"\\\n\s*", " ", said)


def declared(copy: Path, target: str, folder: str, name: str, times: int) -> tuple[Any, set[str]]:
    """The stage that `make TARGET` declares in `copy`, and the names of the stages behind which it comes."""
    (line,) = [line for line in recipe(target, name).splitlines() if "dvc stage add" in line]
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "DVC_NO_ANALYTICS": "1",
    }
    for _ in range(times):
        subprocess.run(["bash", "-euc", line], cwd=copy, env=env, check=True, capture_output=True)
    assert f"dvc repro {folder}/dvc.yaml:{name}" in recipe(target, name)
    with Repo(str(copy)) as repo:
        (stage,) = [s for s in repo.index.stages if s.path_in_repo == f"{folder}/dvc.yaml"]
        before = {s.name for s in repo.index.graph.successors(stage)}
    assert stage.name == name
    return stage, before


def depends(needs: Iterable[str], *names: str) -> bool:
    """Whether all these files are there, or lie in folders that are there."""
    return all(any(name == need or name.startswith(f"{need}/") for need in needs) for name in names)


def test_the_options_of_a_stage_survive_a_shell():
    names = ["data/tasks", "checks/a b/params.yaml", "checks/$(touch x)"]
    assert shlex.split(options(names)) == [word for name in names for word in ("--deps", name)]
