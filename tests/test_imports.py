"""What an import or `--help` may load: the vocabulary and the command line start at once, without torch."""

import json
import subprocess
import sys
import time

import pytest

HEAVY = ("torch", "lightning", "transformers", "dvc", "hydra", "optuna", "matplotlib", "ray", "vllm")
LOADED = "import json, sys; print(json.dumps([name for name in {names!r} if name in sys.modules]))"
SECONDS = 1.0


def heavy_modules_after(code: str) -> tuple[list[str], float]:
    """Which heavy modules a fresh interpreter holds after `code`, and the seconds it took in all."""
    start = time.monotonic()
    program = f"{code}\n{LOADED.format(names=HEAVY)}"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[-1]), time.monotonic() - start


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
    ],
)
def test_nothing_heavy_is_imported(code):
    modules, _ = heavy_modules_after(code)
    assert modules == []


@pytest.mark.parametrize("code", ["import rlanything.core", command("--help")])
def test_it_takes_less_than_a_second(code):
    # The best of three: another process may hold the core for a moment.
    assert min(heavy_modules_after(code)[1] for _ in range(3)) < SECONDS


def test_the_measurement_sees_heavy_modules():
    assert heavy_modules_after("import hydra")[0] == ["hydra"]
