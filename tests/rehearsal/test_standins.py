"""`rlanything rehearse`: data and checkpoints that the paper's preset reads, and what is refused before any work."""

from __future__ import annotations

import json

import pytest
from stage_cases import ROOT

from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from rlanything.cli import main
from rlanything.config import load, parse
from rlanything.core.errors import ConfigError
from rlanything.core.protocols import GeneratedData
from rlanything.core.types import Direction, InvalidProposal
from rlanything.engines.placement import Role
from rlanything.planning import compose
from rlanything.rehearsal import standins
from rlanything.runs import build

SMALL = (
    "tasks.train=4",
    "tasks.panels.in_domain.tasks=1",
    "tasks.panels.out_of_domain.tasks=1",
    "tasks.panels.reward_panel.tasks=1",
    "rollout.max_steps=2",
)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    return tmp_path


def rehearsal(*overrides: str):
    return parse(compose.compose(["scale=rehearsal", *SMALL, *overrides], ROOT))


def test_one_command_makes_all_that_the_presets_pipeline_reads(project, capsys, monkeypatch):
    monkeypatch.chdir(project)  # the paths of an environment's files are relative to where a run happens
    assert main(["rehearse", "--steps", "1", "--reward", "qwen3", *SMALL]) == 0
    assert capsys.readouterr().out.count("written") == 4
    config = load(project / "params.yaml")
    assert (config.scale, config.model.embedded, list(config.arms)) == ("rehearsal", None, ["full"])
    kinds = {
        name: json.loads((project / "checkpoints" / name / "config.json").read_text())
        for name in standins.ROLES
    }
    assert {name: kind["model_type"] for name, kind in kinds.items()} == {
        "policy": "qwen2",
        "reward": "qwen3",
        "adapter": "qwen3",
    }
    model, tokenizer = build.load(config, config.model.policy, project, Role.FROZEN)
    assert build.chat_model(config, model, tokenizer).start([{"role": "user", "content": "go"}])
    assert len(list((project / "checkpoints" / "data" / "train").rglob("game.tw-pddl"))) == config.tasks.train


def test_nothing_that_is_there_is_overwritten(project):
    (project / "checkpoints" / "reward").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"model\.reward\.path = checkpoints/reward: it exists"):
        standins.make(rehearsal(), project, 1, {})
    assert not (project / standins.DATA).exists()


@pytest.mark.parametrize(
    ("overrides", "steps", "said"),
    [
        (
            ["model.policy.path=/tmp/x"],
            1,
            r"model\.policy\.path = /tmp/x: a stand-in is written to a folder of the project",
        ),
        (["model.policy.path=../x"], 1, "a folder of the project"),
        (
            ["model=embedded", "adaptation.max_tokens=48"],
            1,
            r"model\.embedded: these models are made by `bootstrap`",
        ),
        ([], 0, "--steps 0: must be at least 1"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_before_any_work(project, overrides, steps, said):
    with pytest.raises(ConfigError, match=said):
        standins.make(rehearsal(*overrides), project, steps, {})
    assert not (project / "checkpoints").exists()


@pytest.mark.parametrize("cls", [AlfworldFamily, CodingFamily])
def test_a_rewrite_in_the_form_of_the_downloaded_set_can_be_read_there(cls, tmp_path):
    generated = cls.easiest({"edit": "tokens"})
    assert isinstance(generated, GeneratedData)
    generated.write_data(tmp_path, generated.stand_ins({"train": 8}, 0))
    if cls is AlfworldFamily:
        read = cls(data=str(tmp_path), edit="tokens")
    else:
        read = cls(problems={"train": str(tmp_path / "train.json")}, form="reference")
    tasks = generated.make("train", 8, 0)
    stored = {task.instruction: task for task in read.make("train", 8, 0)}
    assert set(stored) == {task.instruction for task in tasks}
    tried = readable = 0
    for task in tasks:
        try:
            facts, reply = generated.rewriting(task, Direction.EASIER, 0)
        except InvalidProposal:  # not every task can be made easier
            continue
        assert facts == read.describe(stored[task.instruction])
        tried += 1
        readable += read.validate(read.parse(stored[task.instruction], reply)) == ""
    assert tried == readable > 0
