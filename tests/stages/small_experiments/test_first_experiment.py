"""The page of the first experiment: its commands lead from a clone to a report, at the smallest numbers there are."""

from __future__ import annotations

import re
import shlex
import shutil

import pytest
from stage_cases import ROOT

from rlanything.cli import main

pytestmark = pytest.mark.integration
PAGE = (ROOT / "docs" / "first_experiment.md").read_text()
LINES = [
    line
    for block in re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.splitlines()
    if not line.startswith(("make ", ". ", "git "))
]
OURS = [line for line in LINES if line.startswith("rlanything ") or line == "dvc repro"]
PIPELINE = ["tasks", "bootstrap", "train --arm full", "evaluate --arm base", "evaluate --arm full", "report"]
"""What `dvc repro` runs for one arm; that it does is tested in tests/pipeline."""
TINY = [
    *(f"~arm@arms.{arm}" for arm in ("outcome", "policy", "policy_reward")),
    *(f"bootstrap.{name}.episodes=16" for name in ("policy", "reward", "adapter")),
    *(f"bootstrap.{name}.steps=4" for name in ("policy", "reward", "adapter")),
    *(f"tasks.panels.{panel}.tasks=2" for panel in ("in_domain", "out_of_domain", "reward_panel")),
    *("tasks.train=4", "rollout.tasks=2", "rollout.rollouts=2", "rollout.max_steps=3", "train.iterations=1"),
    *(
        "evaluate.max_steps=3",
        "evaluate.reward_rollouts=1",
        "evaluate.curve_tasks=1",
        "evaluate.cooling=null",
    ),
]
"""As small as it goes: what is tested is that the chain holds."""


@pytest.mark.long
def test_the_commands_of_the_page_lead_to_a_report(tmp_path, monkeypatch, capsys):
    for name in ("experiments", "envs", "rlanything"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "dvc.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["config", "write"]) == 0, "a clone has this file"
    said = {line: answers(line, capsys) for line in OURS}
    listed = said["rlanything ls"]
    assert "plain" in listed
    assert "signals.lambda=0.5" in listed
    assert "\n  vote    " in next(text for line, text in said.items() if "rollouts show" in line)
    assert (tmp_path / "half-pages" / "index.html").is_file()
    for name in ("plain", "half"):
        assert (tmp_path / ".rla" / name / "evaluation" / "full.json").is_file()
    report = (tmp_path / "report" / "report.md").read_text()
    assert "\n| `full` |" in report
    assert {path.name for path in (tmp_path / "runs" / "full").iterdir()} == {"seed-0", "seed-1"}


def answers(line: str, capsys) -> str:
    """What a line of the page says; a command that is not of this project is replaced by ours that it runs."""
    for command in PIPELINE if line == "dvc repro" else [line.removeprefix("rlanything ")]:
        words = shlex.split(command, comments=True)
        more = TINY if any(word.startswith("scale=") for word in words) else []
        alone = (
            ["--one-process"] if {"train", "evaluate"} & set(words) else []
        )  # each process takes seconds to start
        assert main([*words, *more, *alone]) == 0, (line, capsys.readouterr())
    return str(capsys.readouterr().out)


def test_the_other_commands_are_those_of_dvc():
    from dvc.cli import parse_args

    rest = [line for line in LINES if line not in OURS]
    assert len(rest) == 4
    for line in rest:
        program, *words = shlex.split(line, comments=True)
        assert program == "dvc"
        parse_args(words)


def test_the_page_has_every_step_of_the_pipeline():
    assert "dvc repro" in OURS
    assert len(OURS) > 12
    assert [line.split()[1] for line in OURS[:2]] == ["config", "plan"]
