"""`rlanything env init`: all of an environment or nothing, under a name that hides nothing, in the house's style."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlanything.cli import main
from rlanything.core.errors import ConfigError
from rlanything.files import atomic
from rlanything.scaffold import environment
from rlanything.scaffold.environment import make_environment

ROOT = Path(__file__).parents[2]
MADE = [
    "envs/maze/README.md",
    "envs/maze/__init__.py",
    "envs/maze/environment.py",
    "envs/maze/family.py",
    "envs/maze/teacher.py",
    "experiments/env/maze.yaml",
    "tests/envs/maze/test_maze.py",
]
LONGEST = "a_very_long_name_of_twen"


@pytest.fixture
def project(tmp_path) -> Path:
    """As much of a project as the command looks at."""
    for name in (
        "envs/__init__.py",
        "envs/settings.py",
        "experiments/config.yaml",
        "experiments/env/easy.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_known.py").touch()
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def test_it_makes_the_package_its_configuration_and_its_tests(project, capsys):
    before = contents(project)
    assert main(["--root", str(project), "env", "init", "maze"]) == 0
    out = capsys.readouterr().out
    assert sorted(set(contents(project)) - set(before)) == MADE
    assert contents(project) | before == contents(project)
    assert all(f"{name}: written\n" in out for name in MADE)
    assert "  rlanything train --arm full env=maze scale=smoke\n" in out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("dark-maze", "did you mean 'dark_maze'?"),
        ("Maze", "did you mean 'maze'?"),
        ("2rooms", "did you mean 'rooms'?"),
        ("../maze", "did you mean 'maze'?"),
        ("", "a name begins with a letter"),
        ("_maze", "did you mean 'maze'?"),
        ("mäze", "lower-case letters"),
        ("maze\n", "lower-case letters"),
        (f"{LONGEST}t", "at most 24"),
        ("class", "a keyword of Python"),
        ("match", "a keyword of Python"),
        ("null", "read as a value"),
        ("json", "in place of Python's or an installed 'json'"),
        ("torch", "in place of Python's or an installed 'torch'"),
        ("rlanything", "in place of Python's or an installed 'rlanything'"),
        ("settings", "would hide"),
        ("easy", "easy.yaml: exists"),
        ("known", "test_known.py exists"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_made(project, capsys, name, said):
    before = contents(project)
    assert main(["--root", str(project), "env", "init", name]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.startswith("rlanything: ")
    assert contents(project) == before


@pytest.mark.parametrize("place", MADE)
def test_what_exists_is_never_overwritten(project, place):
    (project / place).parent.mkdir(parents=True, exist_ok=True)
    (project / place).write_text("mine")
    before = contents(project)
    with pytest.raises(ConfigError, match="exists"):
        make_environment(project, "maze")
    assert contents(project) == before


def test_a_second_time_it_says_that_it_exists(project):
    make_environment(project, "maze")
    before = contents(project)
    with pytest.raises(ConfigError, match=r"envs/maze: exists; choose another name, or remove it"):
        make_environment(project, "maze")
    assert contents(project) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_when_one_part_cannot_be_written_none_stays(project, monkeypatch, error, at):
    before, writes = contents(project), []
    real = {"_write": environment._write, "write_text": atomic.write_text}

    def failing(name: str):
        def write(*given: object) -> None:
            writes.append(name)
            if len(writes) > at:
                raise error
            real[name](*given)

        return write

    monkeypatch.setattr(environment, "_write", failing("_write"))
    monkeypatch.setattr(environment.atomic, "write_text", failing("write_text"))
    with pytest.raises(type(error)):
        make_environment(project, "maze")
    assert len(writes) == at + 1
    assert contents(project) == before
    assert not (project / "envs" / "maze").exists()


@pytest.mark.parametrize("missing", ["experiments/env/maze.yaml", "tests/envs/maze", "envs/maze"])
def test_after_a_kill_the_same_command_makes_what_is_missing(project, missing):
    make_environment(project, "maze")
    whole = contents(project)
    gone = project / missing
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    make_environment(project, "maze")
    assert contents(project) == whole


def test_a_place_that_cannot_be_written_to_is_named_before_anything_is_made(project):
    (project / "tests" / "envs").write_text("a file, where a folder must be")
    before = contents(project)
    with pytest.raises(ConfigError, match=r"tests/envs: cannot be written to"):
        make_environment(project, "maze")
    assert contents(project) == before


def test_outside_a_project_and_in_a_workspace_it_says_where_to_go(project, tmp_path_factory):
    with pytest.raises(ConfigError, match=r"no project, because it has no experiments/config\.yaml"):
        make_environment(tmp_path_factory.mktemp("nothing"), "maze")
    copied = project / ".rla" / "smoke"
    shutil.copytree(project / "envs", copied / "envs")
    shutil.copytree(project / "experiments", copied / "experiments")
    linked = tmp_path_factory.mktemp("linked")
    for name in ("envs", "experiments"):
        (linked / name).symlink_to(project / name)
    for workspace in (copied, linked):
        with pytest.raises(ConfigError, match="environments are made in the project"):
            make_environment(workspace, "maze")


@pytest.mark.parametrize("name", ["b", "zoo", "dark_maze", LONGEST])
def test_what_it_makes_passes_the_linters_of_the_project_whatever_its_name(project, name):
    shutil.copy(ROOT / "pyproject.toml", project)
    for module in ("settings.py", "splits.py"):
        shutil.copy(ROOT / "envs" / module, project / "envs")
    (project / "rlanything").symlink_to(ROOT / "rlanything")  # ruff looks which modules there are
    made = [str(path) for path in make_environment(project, name) if path.suffix == ".py"]
    lint = [
        ["ruff", "check", "--no-cache", *made],
        ["ruff", "format", "--check", "--diff", "--no-cache", *made],
    ]
    for words in (*lint, ["mypy", "-p", f"envs.{name}"]):
        done = subprocess.run(
            [sys.executable, "-m", *words], cwd=project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
