"""What an import or `--help` may load: the vocabulary and the command line start at once, without torch."""

import json
import subprocess
import sys

import pytest

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
    ],
)
def test_nothing_heavy_is_imported(code):
    assert heavy_modules_after(code) == []


def test_the_measurement_sees_heavy_modules():
    assert heavy_modules_after("import hydra") == ["hydra"]
