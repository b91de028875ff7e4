"""What an import or `--help` may load: the vocabulary and the command line start at once, without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("torch", "lightning", "transformers", "dvc", "hydra", "optuna", "matplotlib", "ray", "vllm")
LOADED = "import json, sys; print(json.dumps([name for name in {names!r} if name in sys.modules]))"


def heavy_modules_after(code: str) -> list[str]:
    """Which heavy modules a fresh interpreter holds after `code`."""
    program = f"{code}\n{LOADED.format(names=HEAVY)}"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1])


def command(*words: str) -> str:
    """A program that runs one command line in-process and survives its exit."""
    return f"""
from rlanything.cli import main
try:
    main({list(words)!r})
except SystemExit:
    pass
"""


def returning(code: int, root: Path, *words: str) -> str:
    """A program that runs one command in the project `root`, which must end with this exit code."""
    return f"""
from rlanything.cli import main
assert main(["--root", {str(root)!r}, *{list(words)!r}]) == {code}
"""


@pytest.mark.parametrize(
    "code",
    [
        "import rlanything.core, rlanything.core.types, rlanything.core.signals, rlanything.core.theory",
        "import rlanything.config",
        "import rlanything.cli",
        command("--help"),
        command("--version"),
        command("train", "--help"),
        command("config", "write", "--help"),
        command("buffer", "ls", "--help"),
        command("rollouts", "show", "--help"),
        command("view", "--help"),
        command("watch", "--once"),
    ],
)
def test_nothing_heavy_is_imported(code):
    assert heavy_modules_after(code) == []


def test_the_measurement_sees_heavy_modules():
    assert heavy_modules_after("import hydra") == ["hydra"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("config", "check"), 0),
        (("config", "check", "scale=local", "path=Qwen/Qwen2.5-0.5B-Instruct"), 0),
        (("train", "--arm", "ful"), 2),
        (("train", "--arm", "full", "x.y=1"), 2),
        (("plan", "--device", "H100", "--json"), 0),
    ],
)
def test_checks_and_plans_load_neither_torch_nor_dvc(words, code):
    """A typo is answered at once. Hydra composes overrides, so it may be loaded."""
    assert set(heavy_modules_after(returning(code, ROOT, *words))) <= {"hydra"}


@pytest.mark.long
def test_a_plan_for_this_cpu_measures_it_with_torch():
    assert "torch" in heavy_modules_after(returning(0, ROOT, "plan", "--device", "cpu", "--json"))


def test_replay_loads_neither_torch_nor_dvc(undisturbed):
    program = returning(0, undisturbed.parents[2], "replay", "full", "signals.lambda=0.5")
    assert set(heavy_modules_after(program)) <= {"hydra"}
