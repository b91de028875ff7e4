"""dvc.yaml says the truth: it is what the declared stages and their imports give, and its commands exist."""

import json
import shlex
from pathlib import Path

import pytest
import yaml
from pipeline_cases import ARMS, ROOT, TRAINED, dvc, pipeline

from rlanything.cli import build_parser
from rlanything.config import load, parse
from rlanything.config.evaluation import EvaluateConfig
from rlanything.planning import dvcfile
from rlanything.planning.compose import compose
from rlanything.runs.fingerprint import run_config
from rlanything.runs.provenance import flat
from rlanything.stages.declared import STAGES
from rlanything.stages.dependencies import trained
from rlanything.stages.stage import Stage

BODIES = {name: stage.get("do", stage) for name, stage in pipeline()["stages"].items()}
PARAMS = yaml.safe_load((ROOT / "params.yaml").read_text())
CONFIG = load(ROOT / "params.yaml")
NEEDED = [stage for stage in STAGES if stage.needed(CONFIG)]
BY_NAME = {stage.name: stage for stage in STAGES}


def test_dvc_yaml_is_up_to_date():
    assert (ROOT / "dvc.yaml").read_text() == dvcfile.text(CONFIG), "run `rlanything config pipeline`"


def test_the_file_is_written_only_when_something_changed(tmp_path):
    assert dvcfile.write(tmp_path, CONFIG)
    assert not dvcfile.write(tmp_path, CONFIG)


def test_the_stages_are_those_of_the_pipeline():
    stages = pipeline()["stages"]
    assert list(stages) == ["tasks", "bootstrap", "train", "evaluate", "report"]
    assert list(stages["train"]["foreach"]) == list(TRAINED) == list(CONFIG.arms)
    assert list(stages["evaluate"]["foreach"]) == list(ARMS)


@pytest.mark.parametrize("stage", NEEDED, ids=lambda stage: stage.name)
def test_commands_are_commands_of_the_command_line(stage: Stage):
    for arm in stage.arms(CONFIG) if stage.arms else [""]:
        python, flag, module, *words = shlex.split(BODIES[stage.name]["cmd"].replace("${key}", arm))
        assert (python, flag, module) == ("python", "-m", "rlanything")
        args = build_parser().parse_args(words)
        assert (args.stage, args.arm) == (stage, arm)


@pytest.mark.parametrize("name", BODIES)
def test_code_that_is_named_exists(name):
    code = [dep for dep in BODIES[name]["deps"] if dep.startswith(("envs/", "rlanything/"))]
    assert code
    assert [dep for dep in code if not (ROOT / dep).exists()] == []


@pytest.mark.parametrize("stage", NEEDED, ids=lambda stage: stage.name)
def test_parameters_that_are_named_exist(stage: Stage):
    for key, item in dict(stage.arms(CONFIG) if stage.arms else {"": {}}).items():
        for param in stage.params_for(CONFIG):
            for column, value in item.items():
                param = param.replace(f"${{item.{column}}}", value)
            section = PARAMS
            for part in param.replace("${key}", key).split("."):
                assert part in section, f"{stage.name}: params.yaml has no {param}"
                section = section[part]


def test_an_arm_depends_on_the_scale_and_the_lambda_that_its_advantages_have():
    def columns(**changes):
        arm = CONFIG.arms["policy"].model_copy(update=changes)
        found = trained(CONFIG.model_copy(update={"arms": {"policy": arm}}))["policy"]
        return found["scale"], found["signals"]

    assert columns() == columns(advantage="mixed") == ("signals.advantage_scale", "signals.lambda")
    assert columns(vote_weight=0.5) == ("signals.advantage_scale", "signals.policy_min")
    assert columns(step_votes=False, advantage="trajectory") == ("seed", "signals.policy_min")


@pytest.mark.parametrize("arm", TRAINED)
def test_what_an_arm_depends_on_follows_its_switches(arm):
    train, evaluate = (pipeline()["stages"][name]["foreach"][arm] for name in ("train", "evaluate"))
    switches = CONFIG.arms[arm]
    judged = "signals.lambda" if switches.step_votes else "signals.policy_min"
    assert train["signals"] == ("signals" if switches.train_reward else judged)
    assert train["judge_model"] == "models/reward"
    assert train["scale"] == ("seed" if switches.advantage == "trajectory" else "signals.advantage_scale")
    assert (train["policy_min"], train["policy_max"]) == ("signals.policy_min", "signals.policy_max")
    assert train["learner"] == ("learn.reward" if switches.train_reward else "learn.reward.precision")
    assert train["adaptation"] == ("adaptation" if switches.adapt else "seed")
    assert train["adapter"] == ("adapter" if switches.adapt else "policy")
    assert (train["critic"], train["rewrite"]) == (
        ("critic", "adapter") if switches.adapt else ("judge", "judge")
    )
    assert evaluate["policy"] == f"runs/{arm}"
    assert evaluate["reward"] == (f"runs/{arm}" if switches.train_reward else "models/reward")


ELSEWHERE = ("model.embedded.", "model.adapter.", "model.prompts", "model.images.", "panels.")
"""Values whose effect lies in files that a training depends on, or that a run without pictures does not have."""


def test_a_training_depends_on_every_value_that_decides_its_run():
    columns, stage = trained(CONFIG)["full"], BY_NAME["train"]
    named = [param.replace("${key}", "full") for param in stage.params_for(CONFIG)]
    for column, value in columns.items():
        named = [param.replace(f"${{item.{column}}}", value) for param in named]
    decides = [key for key in flat(run_config(CONFIG, "full")) if not key.startswith(ELSEWHERE)]
    assert "learn.importance_cap" in decides
    assert [key for key in decides if not any(f"{key}.".startswith(f"{name}.") for name in named)] == []


def test_a_measurement_depends_on_every_value_of_its_section_that_is_of_no_other_stage():
    others = {"every", "curve_tasks", "curve_rollouts", "reward_rollouts"}
    stage, named = BY_NAME["evaluate"], set()
    for columns in stage.arms(CONFIG).values():
        named |= {*stage.params_for(CONFIG), *columns.values()}
    assert {f"evaluate.{key}" for key in EvaluateConfig.model_fields if key not in others} <= named


@pytest.mark.parametrize("option", sorted(path.stem for path in (ROOT / "experiments/env").glob("*.yaml")))
def test_stages_that_act_depend_on_the_code_of_their_own_environment_alone(option):
    setting = {**compose([f"env={option}", *(["scale=paper"] if option == "osworld" else [])], ROOT)}
    own = "/".join(setting["env"]["_target_"].split(".")[:2])
    rooms = {own, "envs/computer"} if own in ("envs/web", "envs/desktop") else {own}  # mouse and keyboard
    config = parse(setting)
    for name in ("tasks", "bootstrap", "train", "evaluate"):
        named = {"/".join(Path(dep).parts[:2]) for dep in dvcfile.code(BY_NAME[name], config)}
        # Beside the environments lie single modules that all of them share.
        assert {place for place in named if place.startswith("envs/") and (ROOT / place).is_dir()} == rooms
    assert not [dep for dep in dvcfile.code(BY_NAME["report"], config) if dep.startswith("envs")]


def test_which_written_tests_count_is_a_dependency_of_the_arms_that_have_some():
    stages = yaml.safe_load(dvcfile.text(parse(compose(["env=coding"], ROOT))))["stages"]
    assert "${item.written}" in stages["train"]["do"]["params"]
    found = {arm: columns["written"] for arm, columns in stages["train"]["foreach"].items()}
    counted = dict.fromkeys(("policy", "policy_reward", "full"), "signals.written")
    assert found == {"outcome": "seed", **counted}


def test_an_arm_judged_by_another_arms_reward_model_depends_on_its_run_and_on_no_filter():
    """What `rlanything config write +arm@arms.step_only=step_only` and `rlanything config pipeline` write."""
    config = parse(compose(["+arm@arms.step_only=step_only"], ROOT))
    stages = yaml.safe_load(dvcfile.text(config))["stages"]
    train, evaluate = (stages[name]["foreach"]["step_only"] for name in ("train", "evaluate"))
    assert train["judge_model"] == evaluate["reward"] == "runs/full"
    assert (train["policy_min"], train["policy_max"], train["signals"]) == ("seed", "seed", "signals.lambda")
    assert "${item.judge_model}" in stages["train"]["do"]["deps"]
    assert {"evaluation/step_only.json", "runs/step_only"} <= set(stages["report"]["deps"])


@pytest.mark.parametrize("words", [["scale=paper", "env=osworld"], ["scale=rehearsal", "env=desktop"]])
def test_a_pipeline_with_pictures_names_templates_that_are_there_and_depends_on_how_many_are_shown(words):
    """Arms that rewrite nothing repeat the judge's template: with context = history that is another file."""
    data = compose(words, ROOT)
    stages = yaml.safe_load(dvcfile.text(parse(data)))["stages"]
    for name, stage in stages.items():
        body = stage.get("do", stage)
        for item in stage.get("foreach", {"": {}}).values():
            for dep in body["deps"]:
                for column, value in (item or {}).items():
                    dep = dep.replace(f"${{item.{column}}}", value)
                if dep.startswith("${model.prompts}/"):
                    place = ROOT / dep.replace("${model.prompts}", data["model"]["prompts"])
                    assert place.is_file(), f"{name}: {dep}"
    for name in ("train", "label", "evaluate"):
        assert "model.images" in stages[name].get("do", stages[name])["params"]
    plain = yaml.safe_load(dvcfile.text(parse(compose([], ROOT))))["stages"]
    assert "model.images" not in plain["train"]["do"]["params"]


MAKE = """
from pathlib import Path
value = Path("params.yaml").read_text()
for name in ("runs/full/curve", "provenance/full.json"):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(value)
"""


@pytest.mark.integration
def test_no_cache_of_dvc_brings_back_a_run_without_its_record(tmp_path):
    outs = yaml.safe_load(json.dumps(BODIES["train"]["outs"]).replace("${key}", "full"))
    stage = {"cmd": "python make.py", "params": ["lambda"], "outs": outs}
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"stages": {"train": stage}}))
    (tmp_path / "make.py").write_text(MAKE)
    dvc(tmp_path, "init", "--no-scm", "--quiet")
    for value in (1.0, 0.5, 1.0):
        (tmp_path / "params.yaml").write_text(text := f"lambda: {value}\n")
        dvc(tmp_path, "repro", "--quiet")
        assert [(tmp_path / name).read_text() for name in ("runs/full/curve", "provenance/full.json")] == [
            text,
            text,
        ]
