"""`rlanything rehearse`: data and checkpoints that the paper's preset reads, and what is refused before any work."""

from __future__ import annotations

import json

import pytest
from image_cases import png
from rehearsal_cases import GUI, SMALL, rehearsal
from stage_cases import ROOT
from transformers import AutoTokenizer

from envs.alfworld.family import AlfworldFamily
from envs.coding.family import CodingFamily
from envs.desktop.bridge.answers import WorldError
from envs.desktop.play.environment import DesktopEnvironment
from envs.desktop.small import box
from envs.desktop.small.family import DesktopFamily
from rlanything.cli import main
from rlanything.config import load, parse
from rlanything.core.errors import ConfigError, MachineError
from rlanything.core.images import Image
from rlanything.core.protocols import GeneratedData
from rlanything.core.thoughts import after_thought
from rlanything.core.types import Direction, InvalidProposal
from rlanything.engines.placement import Role
from rlanything.files.images import passing
from rlanything.planning import compose
from rlanything.rehearsal import standins, teaching
from rlanything.runs import build


@pytest.mark.long
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
    model, tokenizer = build.load(config, config.model.policy, project, Role.FROZEN, "policy")
    assert build.chat_model(config, model, tokenizer).start([{"role": "user", "content": "go"}])
    assert len(list((project / "checkpoints" / "data" / "train").rglob("game.tw-pddl"))) == config.tasks.train


def test_nothing_that_is_there_is_overwritten(project):
    (project / "checkpoints" / "reward").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"model\.reward\.path = checkpoints/reward: it exists"):
        standins.make(rehearsal(), project, 1, {})
    assert not (project / standins.DATA).exists()


def test_a_file_that_no_composition_wrote_is_not_replaced_by_one(project, capsys):
    (project / "notes.md").write_text("mine")
    assert main(["--root", str(project), "--params", str(project / "notes.md"), "rehearse"]) == 2
    assert "--params" in capsys.readouterr().err
    assert (project / "notes.md").read_text() == "mine"
    assert not (project / "checkpoints").exists(), "nothing was made"


def test_data_that_is_there_is_not_overwritten(project):
    mine = project / standins.DATA / "mine.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(ConfigError, match="checkpoints/data: it exists, and is not overwritten"):
        standins.make(rehearsal(), project, 1, {})
    assert mine.is_file()


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


@pytest.fixture
def begun(monkeypatch):
    """Every episode begins on a desktop with this picture."""
    picture = Image(png(1024, 768, shade=3))
    monkeypatch.setattr(
        standins, "_begun", lambda config, tasks: {task.task_id: (picture,) for task in tasks}
    )
    return picture


@pytest.mark.long
def test_the_gui_experiment_gets_models_that_see_and_think(project, begun, monkeypatch, capsys):
    monkeypatch.chdir(project)
    assert main(["rehearse", "--steps", "1", *GUI]) == 0
    assert capsys.readouterr().out.count("written") == 5
    config = load(project / "params.yaml")
    assert not (project / standins.DATA).exists()
    with passing() as images:
        images.add([begun])
        for role, source in (
            ("policy", config.model.policy),
            ("reward", config.model.reward),
            ("reward", config.evaluate.judges["Qwen3-VL-32B"]),
        ):
            model, tokenizer = build.load(config, source, project, Role.FROZEN, role)
            assert model.config.model_type == "qwen3_vl"
            seen = build.sight(config, role, source, project, model, images)
            chat_model = build.chat_model(config, model, tokenizer, seen)
            assert seen.last == {"policy": 3, "reward": 2}[role]
            assert after_thought(chat_model.decode(chat_model.encode_choice("done"))) == "done"
    assert (
        json.loads((project / "checkpoints" / "adapter" / "config.json").read_text())["model_type"] == "qwen3"
    )


def test_lessons_of_experts_show_pictures_and_teach_both_verdicts(project, begun, monkeypatch):
    monkeypatch.chdir(project)
    config = parse(compose.compose(["scale=rehearsal", *GUI], ROOT))
    taught = []
    monkeypatch.setattr(
        teaching, "fit", lambda model, rows, *rest, gradient: taught.append((rows, gradient.keywords["eyes"]))
    )
    standins.make(config, project, 1, {})
    (policy, policy_eyes), (reward, reward_eyes), (adapter, no_eyes), (judge, _) = taught
    assert no_eyes is None
    assert reward_eyes.token
    most = [len(row.images) for rows in policy for row in rows]
    assert set(most) == {1, 2, 3}
    assert {len(row.images) for (row,) in reward} == {2}
    assert all(row.ids.count(policy_eyes.token) == 48 * len(row.images) for rows in policy for row in rows)
    asked = {
        folder: tokenizer.decode(rows[0][0].ids)
        for folder, rows in (("reward", reward), ("judge", judge))
        for tokenizer in [AutoTokenizer.from_pretrained(str(project / "checkpoints" / folder))]
    }
    assert "You grade one step" in asked["reward"]
    assert "You check one step" in asked["judge"], "a judge that labels is asked in other words"
    assert all(not row.images for rows in adapter for row in rows)
    tokenizer = AutoTokenizer.from_pretrained(str(project / "checkpoints" / "reward"))
    said = [tokenizer.decode(row.target) for (row,) in reward]
    assert sum("boxed{1}" in text for text in said) == sum("boxed{-1}" in text for text in said) > 0


def test_a_machine_without_what_a_desktop_needs_is_told_before_any_work(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setitem(box.PROGRAMS, "no-such-program", "no-such-package")
    box.missing.cache_clear()
    for words in (["--check"], []):
        assert main(["rehearse", *words, *GUI]) != 0
        assert "apt install --no-install-recommends no-such-package" in capsys.readouterr().err
    box.missing.cache_clear()
    assert [path.name for path in project.iterdir()] == ["experiments"]


def test_an_episode_that_cannot_begin_is_a_fault_of_the_machine(project, monkeypatch):
    def fail(self, task, seed):
        raise WorldError("bwrap: no permission")

    config = parse(compose.compose(["scale=rehearsal", *GUI], ROOT))
    monkeypatch.setattr(DesktopFamily, "environment", lambda self: DesktopEnvironment(None, None))
    monkeypatch.setattr(DesktopEnvironment, "reset", fail)
    with pytest.raises(MachineError, match="no episode can begin on this machine: bwrap: no permission"):
        standins.check(config, project, 1, {})


def test_a_model_that_is_shown_pictures_must_see(project, begun):
    config = parse(compose.compose(["scale=rehearsal", *GUI], ROOT))
    with pytest.raises(
        ConfigError, match=r"--reward llama: it reads text alone, and model\.images\.reward = 2"
    ):
        standins.check(config, project, 1, {"reward": "llama"})


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
