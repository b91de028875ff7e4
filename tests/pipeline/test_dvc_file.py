"""dvc.yaml says the truth: its commands exist, its dependencies exist, and no code that a stage runs is left out."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from pipeline_cases import ARMS, ROOT, TRAINED, pipeline

from rlanything.cli import build_parser
from rlanything.config import parse
from rlanything.stages.compose import compose

STAGES = pipeline()["stages"]
BODIES = {name: stage.get("do", stage) for name, stage in STAGES.items()}
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text())
CONFIG = parse(PARAMS)

CHANGES_NO_RESULT = (
    "rlanything.config",
    "rlanything.engines.bench",
    "rlanything.stages.inputs",
    "rlanything.stages.locks",
    "rlanything.stages.machine",
    "rlanything.stages.progress",
    "rlanything.stages.provenance",
    "rlanything.stages.revision",
    "rlanything.stages.statefile",
    "rlanything.stages.workers",
)
"""Checks, prints, measures, names, or says who works when: what it does is in no output."""
NOT_RUN = {
    "tasks": ("rlanything.engines", "rlanything.loop"),
    "bootstrap": ("rlanything.buffer",),
    "evaluate": ("rlanything.buffer", "rlanything.learn"),
}
"""Imported through stages/build.py or for a type, without a part in what the stage writes."""
FACE = "rlanything.buffer"
"""Imports every command of the buffer; a stage lists the files that it takes from there."""


def test_the_stages_are_those_of_the_pipeline():
    assert list(STAGES) == ["tasks", "bootstrap", "train", "evaluate", "report"]
    assert list(STAGES["train"]["foreach"]) == list(TRAINED)
    assert list(STAGES["evaluate"]["foreach"]) == list(ARMS)


def test_every_arm_of_the_configuration_is_a_stage():
    assert list(CONFIG.arms) == list(STAGES["train"]["foreach"])


@pytest.mark.parametrize("name", STAGES)
def test_commands_are_commands_of_the_command_line(name):
    for arm in STAGES[name].get("foreach", [""]):
        python, flag, module, *words = shlex.split(BODIES[name]["cmd"].replace("${key}", arm))
        assert (python, flag, module) == ("python", "-m", "rlanything")
        assert callable(build_parser().parse_args(words).run)


@pytest.mark.parametrize("name", STAGES)
def test_code_that_is_named_exists(name):
    code = [dep for dep in BODIES[name]["deps"] if dep.startswith(("envs/", "rlanything/"))]
    assert code
    assert [dep for dep in code if not (ROOT / dep).exists()] == []


@pytest.mark.parametrize("name", STAGES)
def test_parameters_that_are_named_exist(name):
    for key, item in dict(STAGES[name].get("foreach", {"": {}})).items():
        for param in BODIES[name]["params"]:
            for column, value in item.items():
                param = param.replace(f"${{item.{column}}}", value)
            section = PARAMS
            for part in param.replace("${key}", key).split("."):
                assert part in section, f"{name}: params.yaml has no {param}"
                section = section[part]


@pytest.mark.parametrize("arm", TRAINED)
def test_what_an_arm_depends_on_follows_its_switches(arm):
    item, switches = STAGES["train"]["foreach"][arm], CONFIG.arms[arm]
    judged = "signals.lambda" if switches.step_votes else "signals.policy_min"
    assert item["signals"] == ("signals" if switches.train_reward else judged)
    assert item["learner"] == ("learn.reward" if switches.train_reward else "learn.policy")
    assert item["adaptation"] == ("adaptation" if switches.adapt else "seed")
    assert item["adapter"] == ("adapter" if switches.adapt else "policy")
    assert (item["critic"], item["rewrite"]) == (
        ("critic", "adapter") if switches.adapt else ("judge", "judge")
    )
    assert STAGES["evaluate"]["foreach"][arm]["policy"] == f"runs/{arm}"
    reward = f"runs/{arm}" if switches.train_reward else "models/reward"
    assert STAGES["evaluate"]["foreach"][arm]["reward"] == reward


@pytest.mark.parametrize("name", STAGES)
def test_no_code_that_a_stage_runs_is_left_out(name):
    grimp = pytest.importorskip("grimp")
    graph = grimp.build_graph("rlanything", "envs", cache_dir=None)
    deps = [CONFIG.env["_code_"] if dep == "${env._code_}" else dep for dep in BODIES[name]["deps"]]
    listed = {module for module in graph.modules if module != FACE and covered(module, deps)}
    left_out = [
        module
        for module in sorted(imported_by(graph, {f"rlanything.stages.{name}"} | listed))
        if not covered(module, deps)
        and not under(module, (*CHANGES_NO_RESULT, *NOT_RUN.get(name, ())))
        and not module_file(module).name.startswith("__init__")
    ]
    assert left_out == []


def imported_by(graph: Any, start: set[str]) -> set[str]:
    """Everything that these modules import, directly or not, without what `FACE` imports for others."""
    found: set[str] = set()
    todo = set(start)
    while todo:
        module = todo.pop()
        found.add(module)
        if module != FACE:
            todo |= graph.find_modules_directly_imported_by(module) - found
    return found


@pytest.mark.parametrize("name", ["tasks", "bootstrap", "train", "evaluate"])
def test_the_environment_is_a_dependency(name):
    assert "${env._code_}" in BODIES[name]["deps"]


@pytest.mark.parametrize(
    "option", sorted(path.stem for path in (ROOT / "experiments" / "env").glob("*.yaml"))
)
def test_the_folder_of_an_environment_is_that_of_its_class(option):
    env = compose([f"env={option}"], ROOT)["env"]
    assert env["_code_"] == env["_target_"].rsplit(".", 2)[0].replace(".", "/")


def covered(module: str, deps: list[str]) -> bool:
    file = module_file(module).relative_to(ROOT).as_posix()
    return any(file == dep or file.startswith(f"{dep}/") for dep in deps)


def under(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def module_file(module: str) -> Path:
    path = ROOT / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
