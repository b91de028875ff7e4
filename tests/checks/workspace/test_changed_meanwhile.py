"""A prompt that is changed while a check runs: what was made with it does not stay, also when the change is undone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from check_cases import QUICK, ROOT

from rlanything.checks import running, workspace
from rlanything.checks.ladder.declare import load_ladder
from rlanything.checks.workspace import Workspace
from rlanything.core.errors import ConfigError
from rlanything.planning import compose
from rlanything.runs.layout import Layout
from rlanything.sweep.trials import inputs

PROMPT = Path("experiments", "prompts", "embedded", "policy_turn.txt")
MADE = {"tasks": "data/tasks/manifest.json", "bootstrap": "models/bootstrap.json"}


class Stages:
    """In the place of every stage: writes the prompt that it had, after a change of it during `changing`."""

    def __init__(self, project: Path, changing: str) -> None:
        self.prompt, self.changing = project / PROMPT, changing
        self.ran: list[str] = []

    def __call__(self, _config, root: Path, command: tuple[str, ...]) -> None:
        self.ran.append(name := " ".join([command[0], *command[2:]]))
        if name == self.changing:
            self.prompt.write_text("another\n")
        made = {"prompt": self.prompt.read_text()}
        layout, arm = Layout(root), command[-1]
        for place in {
            "train": [layout.run(arm, 0) / "x.json", layout.run(arm, 1) / "x.json", layout.provenance(arm)],
            "evaluate": [layout.evaluation(arm)],
        }.get(command[0], [root / MADE.get(command[0], "")]):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(json.dumps(made))


@pytest.fixture
def project(tmp_path) -> Path:
    root = tmp_path / "project"
    shutil.copytree(ROOT / "experiments", root / "experiments")
    for name in ("envs", "rlanything", "dvc.yaml"):
        (root / name).symlink_to(ROOT / name)
    compose.write(root / "params.yaml", QUICK, root)
    declared = {"overrides": QUICK, "seeds": 2, "accuracies": [1.0], "compare": ["policy"], "expert": False}
    (root / "tiny.yaml").write_text(yaml.safe_dump(declared))
    return root


def run(project: Path, stages: Stages, monkeypatch) -> Workspace:
    for module in (workspace, inputs):
        monkeypatch.setattr(module, "run_command", stages)
    space = Workspace.of("tiny", load_ladder(project / "tiny.yaml"), project, project / "params.yaml", 1)
    with running.finished(space, "ladder tiny"):
        return space
    raise AssertionError


@pytest.mark.parametrize("changing", ["tasks", "bootstrap", "evaluate base", "evaluate policy"])
def test_what_another_prompt_made_is_made_again_once_the_change_is_undone(project, monkeypatch, changing):
    before = (project / PROMPT).read_text()
    with pytest.raises(ConfigError, match="changed while"):
        run(project, Stages(project, changing), monkeypatch)
    (project / PROMPT).write_text(before)
    again = Stages(project, "")
    space = run(project, again, monkeypatch)
    assert again.ran[0] == changing, "it goes on there"
    measured = [*(space.root / "evaluation").glob("*.json")]
    made = [space.inputs.place(space.config) / name for name in MADE.values()]
    assert {json.loads(path.read_text())["prompt"] for path in (*made, *measured)} == {before}


def test_what_was_made_goes_too_where_the_configuration_cannot_be_composed_any_more(project, monkeypatch):
    stages = Stages(project, "")

    def broken(config, root: Path, command: tuple[str, ...]) -> None:
        stages(config, root, command)
        if command[0] == "evaluate":
            (project / "experiments" / "config.yaml").write_text("defaults: [nothing]\n")

    with pytest.raises(ConfigError):
        run(project, broken, monkeypatch)
    assert stages.ran[-1] == "evaluate base"
    assert not list((project / ".rla" / "checks").glob("tiny-*/evaluation/*"))
