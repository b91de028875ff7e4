"""`rlanything livebench grade` with our grader: which back end, which packages, and what is said of either."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from livebench_files import answer, lines

from envs.coding.family import CodingFamily
from envs.coding.livebench.install import PACKAGES, RECORD, Installation
from envs.coding.livebench.judgments import judgment_path
from rlanything.cli import main
from rlanything.planning.compose import compose

NUMPY = "import numpy as np\ninput()\nprint(np.array(input().split(), dtype=int).sum())"
Command = Callable[..., int]


@pytest.fixture
def command(files: dict[str, Path]) -> Command:
    """`livebench grade` on the files, with further words."""

    def run(*words: str, before: tuple[str, ...] = ()) -> int:
        given = [word for name, path in files.items() for word in (f"--{name}", str(path))]
        options = ["--grader", "ours", "--model", "m", "--release", "2024-11-25", "--workers", "1"]
        return main([*before, "livebench", "grade", *given, *options, *words])

    return run


@pytest.fixture
def no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")


def written(folder: Path, *overrides: str) -> tuple[str, str]:
    """Options that name a configuration."""
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(compose(overrides)))
    return "--params", str(path)


@pytest.mark.usefixtures("no_docker")
def test_our_grader_takes_the_back_end_of_the_configuration(
    command: Command, tmp_path: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    params = written(tmp_path, "env=coding", "env.backend=docker")
    assert command(before=params) == 2
    assert "nothing answers as Docker" in capsys.readouterr().err
    trusted = written(tmp_path, "env=coding", "env.backend=subprocess", "env.trusted=true")
    assert command(before=trusted) == 0
    record = judgment_path(files["data"], "LCB_generation").with_name("grading.json")
    assert json.loads(record.read_text())["backend"] == "subprocess"
    assert command("--backend", "docker", before=trusted) == 2
    assert "nothing answers as Docker" in capsys.readouterr().err


@pytest.mark.usefixtures("no_docker")
def test_a_back_end_can_be_named(
    command: Command, tmp_path: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("--backend", "docker") == 2
    assert "nothing answers as Docker" in capsys.readouterr().err
    assert command("--backend", "bwarp") == 2
    assert (
        "--backend: 'bwarp' is not one of bwrap, docker, subprocess (did you mean bwrap?)"
        in capsys.readouterr().err
    )
    assert command("--backend", "subprocess") == 2
    assert "is no sandbox" in capsys.readouterr().err
    assert not files["data"].exists()


def test_another_environments_configuration_says_nothing_of_the_back_end(
    command: Command, family: CodingFamily, tmp_path: Path
) -> None:
    family.sandbox()  # or a skip that says what is missing
    assert command(before=written(tmp_path)) == 0


def test_programs_have_the_packages_of_livebenchs_environment(
    command: Command, family: CodingFamily, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    family.sandbox()  # or a skip that says what is missing
    if importlib.util.find_spec("numpy") is None:
        pytest.skip("missing: pip install numpy")
    lines(files["answers"], [answer("one", NUMPY), answer("two", "import no_such_module")])
    folder = files["data"] / "setup"
    assert command("--folder", str(folder)) == 0
    printed = capsys.readouterr().out
    assert "coding: 0.0 of 100" in printed
    assert "lacks packages of LiveBench's environment that these import: one (numpy)\n" in printed
    assert command("--folder", str(folder)) == 0
    assert "one (numpy)\n" in capsys.readouterr().out
    recorded(folder, sys.version.split()[0])
    again = ("--folder", str(folder), "--data", str(files["data"] / "again"))
    assert command(*again) == 0
    printed = capsys.readouterr().out
    assert "coding: 50.0 of 100" in printed
    assert "packages" not in printed
    recorded(folder, "3.2.1")
    assert command(*again) == 2
    assert "its packages are those of Python 3.2" in capsys.readouterr().err


def recorded(folder: Path, version: str) -> None:
    """A setup whose environment is the one of this interpreter."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Installation("", "", False, sys.executable, version, dict.fromkeys(PACKAGES, ""))
    (folder / RECORD).write_text(json.dumps(asdict(made)))


def test_a_broken_record_of_the_setup_is_told(
    command: Command, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, message in (('{"repository": ', "not JSON"), ("{}", "repository: Field required")):
        (tmp_path / RECORD).write_text(text)
        assert command("--folder", str(tmp_path)) == 2
        assert message in capsys.readouterr().err
    assert not files["data"].exists()
