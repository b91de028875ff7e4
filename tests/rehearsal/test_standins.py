"""`rlanything rehearse`: data and checkpoints that the paper's preset reads, and what is refused before any work."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from image_cases import png
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
from rlanything.learn.supervised import fit
from rlanything.planning import compose
from rlanything.planning.costs.sizes import DECLARED
from rlanything.rehearsal import standins, teaching
from rlanything.rehearsal.architectures import WIDTH
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
    model, tokenizer = build.load(config, config.model.policy, project, Role.FROZEN)
    assert build.chat_model(config, model, tokenizer).start([{"role": "user", "content": "go"}])
    assert len(list((project / "checkpoints" / "data" / "train").rglob("game.tw-pddl"))) == config.tasks.train


REAL = {
    "model_type": "qwen2",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 4096,
    "max_position_embeddings": 4096,
}
"""Of a real checkpoint, if one were this small."""


def shared(path: str = "checkpoints/base") -> list[str]:
    """One folder for all roles, written in two ways."""
    return [f"model.policy.path={path}", f"model.reward.path=./{path}", f"model.adapter.path={path}"]


def declares(folder, sizes: dict) -> None:
    """A project's own copy of experiments/ that declares one more checkpoint."""
    (folder / "experiments").unlink()
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    file = folder / DECLARED
    file.write_text(json.dumps({**json.loads(file.read_text()), "Big/Model": sizes}))


def test_roles_with_one_checkpoint_of_real_size_get_one_that_is_taught_nothing(project, monkeypatch, capsys):
    monkeypatch.chdir(project)
    monkeypatch.setattr(teaching, "fit", lambda *_: pytest.fail("it is taught"))
    declares(project, REAL)
    assert main(["rehearse", "--policy", "Big/Model", *SMALL, *shared()]) == 0
    assert capsys.readouterr().out.count("checkpoints/base: written") == 1
    assert json.loads((project / "checkpoints/base/config.json").read_text())["vocab_size"] == 4096


def test_with_steps_it_is_taught_what_all_its_roles_write(project, monkeypatch):
    """A hundred steps are each role's, so a shared model has three hundred."""
    taught = []

    def noting(model, rows, settings, *args, **named):
        taught.append((len(rows), settings.steps, settings.lr))
        return fit(model, rows, settings, *args, **named)

    monkeypatch.chdir(project)
    monkeypatch.setattr(teaching, "fit", noting)
    declares(project, {**REAL, "hidden_size": 2 * WIDTH, "num_key_value_heads": 1})
    command = ["rehearse", "--steps", "1", "--policy", "Big/Model"]
    assert main([*command, *SMALL, *shared("checkpoints/all")]) == 0
    shutil.rmtree(project / "checkpoints")
    (project / "params.yaml").unlink()
    assert main([*command, "--reward", "Big/Model", "--adapter", "Big/Model", *SMALL]) == 0
    together, *each = taught
    assert len(each) == 3
    assert all(rows for rows, _, _ in each)
    assert together == (sum(rows for rows, _, _ in each), 3, teaching.RATE / 2)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (
            {**REAL, "hidden_size": "x"},
            r"Big/Model: experiments/model/sizes\.json: hidden_size = x: must be a whole",
        ),
        (5, r"Big/Model: experiments/model/sizes\.json: must be an object with the fields of a config\.json"),
    ],
)
def test_damaged_sizes_are_refused(project, monkeypatch, capsys, sizes, said):
    monkeypatch.chdir(project)
    declares(project, sizes)
    assert main(["rehearse", "--policy", "Big/Model", *SMALL]) != 0
    assert re.search(said, capsys.readouterr().err)
    assert not (project / "checkpoints").exists()


@pytest.mark.parametrize("kinds", [{}, {"policy": "Big/Model", "reward": "qwen3"}])
def test_a_folder_that_roles_cannot_share_is_refused(project, kinds):
    with pytest.raises(ConfigError, match=r"model\.reward\.path = .*: it is the folder of model\.policy too"):
        standins.make(rehearsal(*shared()), project, 1, kinds, {"Big/Model": REAL})
    assert not (project / "checkpoints").exists()


def test_judges_that_label_with_a_shared_checkpoint_are_one_role_in_its_lessons():
    judges = [f"+evaluate.judges.{name}.path=checkpoints/base" for name in ("one", "other")]
    found = standins._places(
        rehearsal(*shared(), *judges), ROOT, {"policy": "Big/Model"}, {"Big/Model": REAL}
    )
    (_, roles, _), *others = found.values()
    assert (roles, others) == (["policy", "reward", "adapter", "labeller"], [])


def test_a_role_that_is_shown_pictures_shares_no_checkpoint_that_reads_text():
    config = parse(compose.compose(["scale=rehearsal", *GUI, *shared(), "model.images.policy=0"], ROOT))
    with pytest.raises(
        ConfigError, match=r"model\.reward\.path.*model\.images\.reward = 2; give it a folder"
    ):
        standins._places(config, ROOT, {"policy": "Big/Model"}, {"Big/Model": REAL})


def test_nothing_that_is_there_is_overwritten(project):
    (project / "checkpoints" / "reward").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"model\.reward\.path = checkpoints/reward: it exists"):
        standins.make(rehearsal(), project, 1, {})
    assert not (project / standins.DATA).exists()


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


GUI = ("env=desktop", "tasks.train=2", *(f"tasks.panels.{p}.tasks=1" for p in ("in_domain", "reward_panel")))


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
            model, tokenizer = build.load(config, source, project, Role.FROZEN)
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
    monkeypatch.setattr(teaching, "fit", lambda model, rows, *rest, eyes: taught.append((rows, eyes)))
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
