"""Makefile and CI script: what they promise can be checked without running all of it."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys

import pytest
from _pytest.mark.expression import Expression
from pipeline_cases import ROOT


def test_make_help_describes_every_target():
    result = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    described = set(re.findall(r"^  make (\S+)", result.stdout, flags=re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == described


def test_the_workers_of_make_test_keep_tests_together_that_share_a_fixture(request):
    """Some versions of pytest and xdist together ignore groups, and say nothing."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("needs workers: pytest -n 2 --dist loadgroup")
    assert request.node.nodeid.endswith("@test_project_files")


def test_make_repro_of_another_scale_leaves_the_real_results_alone():
    result = subprocess.run(
        ["make", "--dry-run", "repro", "SCALE=smoke"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert re.search(
        r"cd .rla/smoke && python -m rlanything config write scale=smoke && .* && dvc repro$",
        result.stdout,
        re.M,
    )
    assert not re.search(r"^dvc repro", result.stdout, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "tried", "made"),
    [
        (["repro", "SCALE=smoke"], "config check scale=smoke > /dev/null", "mkdir -p .rla/smoke/.dvc"),
        (
            ["rehearse", "ENV=coding"],
            "rehearse --check env=coding_data",
            "rm -rf .rla/coding-rehearsal",
        ),
    ],
)
def test_a_composition_is_tried_before_its_folder_is_made(words, tried, made):
    """The composition is tried before the folder of the workspace is made or cleared."""
    said = subprocess.run(
        ["make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert said.index(tried) < said.index(made)


@pytest.mark.parametrize("left", ["data", "models"])
@pytest.mark.parametrize(
    ("words", "name"), [(["repro", "SCALE=smoke"], "smoke"), (["rehearse"], "alfworld-rehearsal")]
)
def test_a_trial_of_the_same_name_is_refused_because_its_links_lead_to_the_project(
    tmp_path, words, name, left
):
    """DVC removes an output before it is made again, also through a link: it would be the project's."""
    for file in ("Makefile", "experiments", "pyproject.toml"):
        (tmp_path / file).symlink_to(ROOT / file)
    place = tmp_path / ".rla" / name
    place.mkdir(parents=True)
    (place / left).symlink_to(tmp_path / left)  # also one that leads nowhere yet
    tried = subprocess.run(
        ["make", "--dry-run", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (tried.returncode, tried.stdout) == (2, "")
    assert f".rla/{name}/{left}: a link" in tried.stderr
    assert "give the trial another name" in tried.stderr
    other = ["make", "--dry-run", "repro", "SCALE=study"]
    assert subprocess.run(other, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    (place / left).unlink()
    (place / left).mkdir()
    again = ["make", "--dry-run", *words]
    assert subprocess.run(again, cwd=tmp_path, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("target", ["help", "lint", "test"])
def test_an_environment_variable_of_the_shell_stops_no_other_target(target):
    tried = subprocess.run(
        ["make", "--dry-run", target],
        cwd=ROOT,
        capture_output=True,
        check=False,
        env={**os.environ, "ENV": "prod"},
    )
    assert tried.returncode == 0


def test_values_that_the_default_experiment_would_not_have_are_refused():
    """It reads params.yaml: with SET it would run for half an hour with other values than were asked for."""
    words = ["make", "--dry-run", "repro", "SET=train.seeds=9"]
    tried = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert tried.returncode == 2
    assert "`rlanything config write train.seeds=9`, then `make repro`" in tried.stderr
    for other in ("SCALE=smoke", "ENV=coding"):
        assert subprocess.run([*words, other], cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("word", ["SCALE=smok", "ENV=codin", "SCALE=%", "SCALE=default smok"])
def test_an_unknown_name_is_refused_before_anything_is_installed(word):
    tried = subprocess.run(
        ["make", "--dry-run", "repro", word], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (tried.returncode, tried.stdout) == (2, "")
    folder = word.partition("=")[0].lower()
    known = " ".join(sorted(path.stem for path in (ROOT / "experiments" / folder).glob("*.yaml")))
    assert f"{word}: unknown; known: {known}" in tried.stderr


def test_what_the_commands_of_the_docs_write_is_ignored_by_git():
    """Otherwise a first day with them leaves `git status` full of files that nobody wants to commit."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    blocks = [b for page in pages for b in re.findall(r"^```bash$(.*?)^```$", page.read_text(), re.M | re.S)]
    written = {name.rstrip("/") for b in blocks for name in re.findall(r"--output (\w[\w./-]*)", b)}
    assert {"run.html", "half-pages", "trial.yaml"} <= written
    folders = [f"{name}/x" for name in written if "." not in name]
    names = sorted([*(name for name in written if "." in name), *folders])
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == names


def test_what_cannot_run_here_leaves_nothing_behind(tmp_path):
    """The paper's scale plays downloaded games. Without them `make repro` refuses before it makes its folder."""
    for name in (
        "Makefile",
        "pyproject.toml",
        "rlanything",
        "envs",
        "experiments",
        "dvc.yaml",
        "params.yaml",
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    tools = tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tools / "python").chmod(0o755)
    (tmp_path / "venv" / ".installed").touch()
    before = sorted(path.name for path in tmp_path.iterdir())
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    words = ["make", "-o", "venv/.installed", "repro", "SCALE=paper", "VENV=venv"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "'$ALFWORLD_DATA' names an environment variable that is not set" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize(("env", "key"), [("desktop", "env.worlds=2"), ("web", "env.timeout=50")])
def test_a_desktop_and_pages_are_rehearsed_with_tasks_of_their_own(env, key):
    words = ["make", "--dry-run", "rehearse", f"ENV={env}", f"SET={key}"]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert said.count(f"env={env} {key}") == 2
    assert said.index(f"rehearse --check env={env}") < said.index(f"rm -rf .rla/{env}-rehearsal")


@pytest.mark.parametrize(("broken", "found"), [(("python3.11",), "python3"), (("python3.11", "python3"), "")])
def test_a_python_that_only_says_that_it_is_not_there_is_passed_over(tmp_path, broken, found):
    """As pyenv's stand-ins do for versions that are installed but not chosen."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("python3.11", "python3", "python3.12", "python3.13"):
        said = "exit 127" if name in broken or not found else f'exec "{sys.executable}" "$@"'
        (tools / name).write_text(f"#!/bin/sh\n{said}\n")
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "venv", f"VENV={tmp_path / 'venv'}", *(["--dry-run"] if found else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env, check=False)
    if found:
        assert f'"{tools / found}" -m venv' in done.stdout
    else:
        assert done.returncode != 0
        assert "Python 3.11 or newer is needed" in done.stderr
        assert not (tmp_path / "venv").exists()


def test_the_ci_script_is_executable_bash():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & stat.S_IXUSR
    subprocess.run(["bash", "-n", str(script)], check=True)


@pytest.mark.parametrize(
    "command", ["make test", "make test-long", "make lint", "make lint-containers", "make repro SCALE=smoke"]
)
def test_ci_runs_what_a_contributor_runs(command):
    assert re.search(rf"^part \w+ {command}$", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("target", "file", "chosen"),
    [
        ("test-vllm", "tests/engines/test_engine_parity.py", "vllm"),
        ("test-vllm", "tests/engines/lora/test_lora.py", "vllm"),
        ("test-vllm", "tests/stages/small_experiments/test_vllm_run.py", "not servers and not lora"),
        ("test-vllm-runs", "tests/stages/small_experiments/test_vllm_run.py", None),
        ("test-vllm-runs", "tests/images/test_vllm_picture_run.py", None),
    ],
)
def test_the_targets_for_vllm_run_all_of_a_file_that_is_about_it(target, file, chosen):
    """chosen: the tests of a file that others than vLLM run too; None: all."""
    words = ["make", "--dry-run", target]
    told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = [line for line in told.replace("\\\n", " ").splitlines() if file in line.split()]
    parts = shlex.split(command)
    assert (parts[parts.index("-k") + 1] if "-k" in parts else None) == chosen


@pytest.mark.parametrize("marks", [(), ("long",), ("slow",), ("long", "slow")])
def test_every_test_that_is_not_slow_is_run_by_one_of_the_two_targets(marks):
    """CI runs both, so no mark takes a test out of it but `slow`."""
    chosen = re.findall(r'^\t\$\(TESTS\) -m "(.*)"$', (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    ran = [Expression.compile(text).evaluate(lambda name, **_: name in marks) for text in chosen]
    assert len(chosen) == 2
    assert sum(ran) == ("slow" not in marks)


@pytest.mark.parametrize(
    ("failing", "code"), [("none", 0), ("test", 1), ("repro", 1), ("vllm", 0), ("test-vllm", 1)]
)
def test_the_ci_script_passes_only_when_every_part_passes(tmp_path, failing, code):
    """With a `make` that only pretends: each part runs whatever happened before, and the exit code is honest."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("g++", "cmake", "git"):
        (tools / name).symlink_to("/bin/true")
    pretended = '#!/bin/sh\necho "make $*"\necho "3 passed in 0.1s"\n[ "$1" != "' + failing + '" ]\n'
    (tools / "make").write_text(pretended)
    (tools / "make").chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        [str(tmp_path / ".ci" / "run")], capture_output=True, text=True, env=env, check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    parts = ["make test", "make test-long", "make lint", "make repro SCALE=smoke"]
    if failing != "vllm":  # in the background, as its installation
        parts += ["make vllm", "make test-vllm"]
    for part in parts:
        assert f"\n{part}\n" in result.stdout
    closing = result.stdout.splitlines()[-3:]
    assert closing[:2] == ["pytest, long tests: 3 passed in 0.1s", "pytest: 3 passed in 0.1s"]
    assert closing[2].startswith("PASSED" if code == 0 else "FAILED")
