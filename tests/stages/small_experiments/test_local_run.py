"""The page of one's own checkpoints: its commands lead from a folder to a report, with a tiny checkpoint."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from stage_cases import ROOT

from rlanything.cli import main
from rlanything.engines import checkpoint
from rlanything.rehearsal.architectures import architecture

pytestmark = [pytest.mark.slow, pytest.mark.integration]
PAGE = (ROOT / "docs" / "checkpoints.md").read_text()
COMMANDS = re.search(r"## The commands\n.*?```bash\n(.*?)```", PAGE, flags=re.DOTALL)[1].splitlines()
FOLDER = "/models/Qwen2.5-0.5B-Instruct"
PIPELINE = ["tasks", "bootstrap", "train --arm full", "evaluate --arm base", "evaluate --arm full", "report"]
"""What `dvc repro` runs for one arm; that it does is tested in tests/pipeline."""
SMALL = [
    *(f"~arm@arms.{arm}" for arm in ("outcome", "policy", "policy_reward")),
    *(
        "env=alfworld_easy",
        "env.edit=tokens",
        "tasks.train=3",
        "rollout.tasks=1",
        "rollout.rollouts=2",
        "rollout.max_steps=2",
    ),
    *(f"tasks.panels.{panel}.tasks=1" for panel in ("in_domain", "out_of_domain", "reward_panel")),
    *("rollout.max_tokens=12", "judge.max_tokens=12", "judge.max_invalid=1", "adaptation.max_tokens=24"),
    *("adaptation.attempts=1", "train.iterations=1", "train.accelerator=cpu", "train.precision=32-true"),
    *("evaluate.max_steps=2", "evaluate.reward_rollouts=1", "evaluate.every=1", "evaluate.curve_tasks=1"),
    *("evaluate.curve_rollouts=1", "evaluate.solver_tries=1"),
]
"""As small as it goes: what is tested is that the chain holds."""


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    """A checkpoint as a user has it: a folder outside the project."""
    folder = tmp_path_factory.mktemp("models") / "own"
    made = architecture("qwen2")
    tokenizer = made.tokenizer(
        ["You are in a room. On the shelf 1, you see a mug 2. \\boxed{3} \\boxed{-1}"] * 40
    )
    checkpoint.save(made.fresh(tokenizer, 0), tokenizer, folder)
    return folder


def test_the_commands_of_the_page_lead_to_a_report(own, tmp_path, monkeypatch, capsys):
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(tmp_path)
    assert COMMANDS[0].endswith(f"path={FOLDER}")
    assert "dvc repro" in COMMANDS
    for line in COMMANDS:
        for command in PIPELINE if line == "dvc repro" else [line.removeprefix("rlanything ")]:
            words = [word.replace(FOLDER, str(own)) for word in shlex.split(command)]
            more = SMALL if words[:2] == ["config", "write"] else []
            assert main([*words, *more]) == 0, capsys.readouterr()
    out = capsys.readouterr().out
    assert "full/seed-0  iteration 0, slot " in out, "the last command shows a rollout"
    assert "\n  vote    " in out
    report = (tmp_path / "report" / "report.md").read_text()
    assert "\n| `full` |" in report
    assert str(own) in report, "the report names the checkpoint"
    assert main(["replay", "full"]) == 0
    assert main(["replay", "full", "--play"]) == 0
