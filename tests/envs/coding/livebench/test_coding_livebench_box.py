"""LiveBench's box contains what docs/coding.md says, whoever starts it, and the harness survives whatever it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import livebench_box
import pytest

from envs.coding.livebench import boxed_grader
from envs.coding.sandbox import SandboxError
from envs.coding.sandbox.backends.bwrap import find_bwrap

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[4]
PYTHON = "/usr/bin/python3"
"""One that every user can run."""
NOBODY = 65534


def facts_as_nobody(sources: Path) -> dict[str, Any]:
    if os.getuid() != 0:
        pytest.skip("root is needed to become another user; the other half of this test is the one for you")
    if not Path(PYTHON).exists():
        pytest.skip("missing: apt install python3")
    done = subprocess.run(
        [PYTHON, sources / Path(livebench_box.__file__).relative_to(ROOT)],
        env={"PYTHONPATH": str(sources), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd="/",
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(autouse=True, scope="module")
def _bwrap() -> None:
    try:
        find_bwrap()
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["as this user", "as an ordinary user"])
def facts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if request.param == "as an ordinary user":
        return facts_as_nobody(request.getfixturevalue("public_sources"))
    return livebench_box.facts(tmp_path_factory.mktemp("box") / "repository", sys.executable)


def test_processes_are_limited(facts: dict[str, Any]) -> None:
    kind, count = facts["forks"][1].split(": ")
    assert kind == "RuntimeError"
    assert boxed_grader.PROCESSES - 5 <= int(count) < boxed_grader.PROCESSES


def test_little_is_writable_and_all_of_it_has_a_size(facts: dict[str, Any]) -> None:
    sizes = [("/dev/shm", boxed_grader.SHARED_MB), ("/tmp", boxed_grader.DISK_MB)]
    assert facts["writable"] == [None, f"RuntimeError: {sizes}"]


def test_bytes_that_are_no_text_stop_nothing(facts: dict[str, Any]) -> None:
    assert facts["bytes"] == facts["right"] == [1, ""]
    assert facts["dying words"] == [None, "the grader ended with code 7: \ufffd\ufffd[2J gone"]


def test_what_is_said_without_end_is_not_kept(facts: dict[str, Any]) -> None:
    assert facts["flood"][0] is None
    assert facts["flood"][1].startswith("not a result: xxx")
    assert facts["deep result"][1].startswith("not a result: [[[")
    assert facts["long error"][1].startswith("RuntimeError: xxx")
    assert (
        max(len(error) for _, error in (facts[name] for name in livebench_box.PROGRAMS))
        < 2 * boxed_grader.WORDS
    )
    assert facts["peak_mb"] < livebench_box.FLOOD_MB / 10


def test_what_does_not_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxed_grader, "STARTING_S", 1.0)
    monkeypatch.setattr(boxed_grader, "SECONDS_A_TEST", 0.0)
    monkeypatch.setattr(boxed_grader, "CLOSING_S", 0.0)
    installed = livebench_box.stand_in(tmp_path / "repository", sys.executable)
    sleep = "import os, time\nos.fork()\nos.setsid() if os.getpid() != 1 else None\ntime.sleep(60)"
    start = time.monotonic()
    found = boxed_grader.grade_in_box(installed, [(livebench_box.QUESTION, sleep)] * 2, 1)
    assert found == [boxed_grader.Grade(None, "the grader was not done after 1 s")] * 2
    assert time.monotonic() - start < 30


def test_an_interpreter_is_there_under_every_name_that_leads_to_it(tmp_path: Path) -> None:
    """`python3 -m venv` makes links to the `python3` beside the interpreter, which is a link itself."""
    made, environment = tmp_path / "base" / "bin", tmp_path / "env"
    for folder in (made, environment / "bin"):
        folder.mkdir(parents=True)
    (made / "python3.11").touch()
    (made / "python3").symlink_to("python3.11")
    (environment / "bin" / "python3").symlink_to(made / "python3")
    (environment / "bin" / "python").symlink_to("python3")
    assert list(boxed_grader._names(environment / "bin" / "python", environment)) == [made / "python3"]
    assert list(boxed_grader._names(made / "python3.11", environment)) == []
