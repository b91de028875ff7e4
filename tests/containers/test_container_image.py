"""Dockerfile and what belongs to it: what they promise can be checked without building it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from container_cases import EXTRAS, INSTRUCTIONS, ROOT, TARGETS

SCRIPT = ROOT / "containers" / "build_and_smoke.sh"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", INSTRUCTIONS, flags=re.MULTILINE)


def stage(name: str) -> str:
    """The instructions of one stage."""
    (found,) = re.findall(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM|\Z)", INSTRUCTIONS, re.DOTALL | re.MULTILINE)
    return found


def versions(name: str) -> dict[str, str]:
    """The pins of a file of constraints."""
    lines = (ROOT / "containers" / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_stage_starts_from_a_base_that_can_be_chosen_or_from_another_stage():
    assert [arg.split("=")[0] for arg in instructions("ARG")[:2]] == ["BASE", "GPU_BASE"]
    bases = [line.split()[0] for line in instructions("FROM")]
    assert set(bases) <= {"${BASE}", "${GPU_BASE}", *TARGETS}
    assert {"cpu", "gpu", "test"} <= set(TARGETS)
    assert TARGETS[-1] == "cpu", "the last stage is the one that is built by default"


@pytest.mark.parametrize("name", ["cpu-packages", "gpu-packages"])
def test_torch_is_installed_first_and_the_packages_before_the_source(name):
    installs = [line for line in stage(name).splitlines() if "pip install" in line]
    assert "torch==2.13.0" in installs[0]
    assert "--constraint" in installs[1]
    copied = [line for line in stage(name).splitlines() if line.startswith("COPY")]
    assert copied == [
        f"COPY pyproject.toml containers/requirements.py containers/constraints-{name[:3]}.txt ./"
    ]


@pytest.mark.parametrize("name", ["cpu", "gpu", "test"])
def test_an_image_does_not_run_as_root_and_starts_without_a_shell(name):
    lines = stage(name).strip().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000"]
    assert lines[-1] == ('CMD ["make", "test"]' if name == "test" else 'CMD ["make", "repro"]')


@pytest.mark.parametrize("name", ["cpu-runtime", "gpu"])
@pytest.mark.parametrize(
    "setting", ["VENV=/opt/venv", "OMP_NUM_THREADS=1", "OMP_WAIT_POLICY=PASSIVE", "DVC_NO_ANALYTICS=1"]
)
def test_an_image_has_the_settings_of_the_makefile(name, setting):
    assert setting in stage(name)


def test_pip_is_configured_by_a_secret_which_no_layer_keeps():
    for line in instructions("RUN"):
        assert "pip install" not in line or "--mount=type=secret,id=pip," in line
    assert not re.search(
        r"pip\.conf|index-url=|https?://", "\n".join(instructions("COPY") + instructions("ENV"))
    )


def test_package_lists_are_not_left_in_a_layer():
    places = [*instructions("RUN"), (ROOT / "containers" / "system.sh").read_text()]
    for text in places:
        assert "apt-get install" not in text or "rm -rf /var/lib/apt/lists/*" in text
        assert "apt-get install" not in text or "--no-install-recommends" in text


@pytest.mark.parametrize(
    ("name", "extras"),
    [
        ("cpu", ["sweep", "coding", "dev", "ray", "lora", "web", "plots"]),
        ("gpu", ["sweep", "coding", "vllm", "lora"]),
    ],
)
def test_every_requirement_is_pinned_to_a_version_that_it_allows(name, extras):
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    pins = {
        canonicalize_name(package): version
        for package, version in versions(f"constraints-{name}.txt").items()
    }
    said = subprocess.run(
        [sys.executable, "containers/requirements.py", *extras],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    required = [Requirement(line) for line in said.stdout.splitlines()]
    assert len(required) > 20
    for requirement in required:
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
    assert pins["torch"] == "2.13.0"


def test_more_extras_can_be_asked_for_and_are_installed_with_the_constraints():
    """An unknown one ends the build: `requirements.py` refuses it."""
    (asked, installed) = re.findall(
        r"python requirements\.py ([^>]*)>|pip install (--constraint [^&]*)", stage("cpu-packages")
    )
    assert asked[0].split() == ["sweep", "coding", "$EXTRAS"]
    assert "constraints-cpu.txt" in installed[1]
    assert "EXTRAS=" in instructions("ARG")


def test_the_page_says_of_which_more_extras_all_packages_are_pinned():
    """Of an extra whose own packages are. What those need is in the file with them."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    pins = {canonicalize_name(package) for package in versions("constraints-cpu.txt")}
    pinned = {
        name
        for name, lines in EXTRAS.items()
        if all(canonicalize_name(Requirement(line).name) in pins for line in lines)
    }
    page = (ROOT / "docs" / "containers.md").read_text()
    sentences = re.search(r"All packages of (.*?) are pinned\. Of those of (.*?) only the ones", page)
    assert sentences is not None
    said, others = (set(re.findall(r"`(\w+)`", part)) for part in sentences.groups())
    assert said == pinned - {"sweep", "coding", "dev"}, "the images have these anyway"
    assert others == EXTRAS.keys() - pinned


def test_requirements_of_an_unknown_extra_are_refused():
    said = subprocess.run(
        [sys.executable, "containers/requirements.py", "gpus"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert "no extra gpus" in said.stderr
    assert "vllm" in said.stderr


def test_the_requirements_are_those_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    said = subprocess.run(
        [sys.executable, "containers/requirements.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == project["dependencies"]


@pytest.mark.parametrize("name", [".git", ".venv", ".dvc/cache", "runs", "models", ".env"])
def test_what_must_not_travel_is_ignored(name):
    assert name in (ROOT / ".dockerignore").read_text().splitlines()


def test_what_the_image_copies_is_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {
        word
        for line in instructions("COPY")
        for word in line.split()[:-1]
        if "/" in word and "--" not in word
    }
    kept = [word for word in copied if not word.startswith("/")]
    assert kept
    for word in kept:
        assert (ROOT / word).is_file()
        assert word not in ignored
        assert word.split("/")[0] not in ignored


@pytest.mark.skipif(
    shutil.which("hadolint") is None, reason="hadolint is not installed: make lint-containers"
)
def test_hadolint_has_nothing_to_say():
    subprocess.run(["hadolint", "Dockerfile"], cwd=ROOT, check=True)


@pytest.mark.parametrize("script", sorted((ROOT / "containers").glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_scripts(script):
    shell = script.read_text().splitlines()[0].split("/")[-1].removeprefix("env ")
    subprocess.run([shell, "-n", str(script)], check=True)
    assert "set -eu" in script.read_text()


def build(tmp_path, *words: str, engine: str = "podman", says: str = "") -> subprocess.CompletedProcess[str]:
    """Run the script with an engine that writes down how it was called."""
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    for name in ("bash", "basename", "dirname", "cat", "sh"):
        if not (tools / name).exists():
            (tools / name).symlink_to(shutil.which(name) or "")
    if engine:
        (tools / engine).write_text(
            f'#!/bin/sh\nfor word in "$@"; do printf "[%s]" "$word" >> {tmp_path}/calls; done\n'
            f'echo >> {tmp_path}/calls\n[ "$1" = from ] && echo box\n{says or ":"}\n'
        )
        (tools / engine).chmod(0o755)
    return subprocess.run(
        ["bash", str(SCRIPT), *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": str(tools)},
    )


def test_the_script_builds_on_the_base_and_runs_the_smoke_run(tmp_path):
    result = build(tmp_path, "-i", "https://index", "-r", "--memory=4g", "localhost/debian:bookworm")
    assert result.returncode == 0, result.stderr
    calls = (tmp_path / "calls").read_text()
    first, run = calls.split("\n", 1)
    assert first.startswith("[build][--target][cpu][--tag][localhost/rlanything:cpu]")
    assert "[BASE=localhost/debian:bookworm]" in first
    assert "[TORCH_INDEX=https://index]" in first
    assert run.startswith("[run][--rm][--network][none][--memory=4g][localhost/rlanything:cpu][sh][-c]")
    assert "make repro SCALE=smoke\ntest -s .rla/smoke/report/report.md" in run
    assert "PASSED" in result.stdout


def test_with_buildah_another_target_and_command(tmp_path):
    result = build(tmp_path, "-t", "test", "base", "--", "make", "test", "JOBS=1", engine="buildah")
    assert result.returncode == 0, result.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1:] == [
        "[from][localhost/rlanything:test]",
        "[run][box][--][make][test][JOBS=1]",
        "[rm][box]",
    ]


def test_a_failed_run_is_a_failure_and_leaves_no_container(tmp_path):
    result = build(tmp_path, "base", engine="buildah", says='[ "$1" != run ]')
    assert result.returncode == 1
    assert "PASSED" not in result.stdout
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "[rm][box]"


@pytest.mark.parametrize(
    ("words", "engine", "message"),
    [
        ([], "podman", "BASE is missing"),
        (["--", "make"], "podman", "BASE is missing"),
        (["base", "make"], "podman", "or -- and a command, not make"),
        (["-t", "tpu", "base"], "podman", "has no image tpu; it has cpu, test and gpu"),
        (["base"], "", "neither podman nor buildah is installed"),
        (["-e", "buildah", "base"], "podman", "buildah is not installed"),
        (["-p", "/nowhere/pip.conf", "base"], "podman", "/nowhere/pip.conf cannot be read"),
        (["-v", "/nowhere:/x", "base"], "podman", "/nowhere does not exist"),
    ],
)
def test_the_script_says_what_is_wrong_before_it_builds(tmp_path, words, engine, message):
    result = build(tmp_path, *words, engine=engine)
    assert result.returncode == 2
    assert message in result.stderr
    assert not (tmp_path / "calls").exists()
