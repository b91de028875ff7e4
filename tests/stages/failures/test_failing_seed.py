"""One failing seed of several ends the whole stage at once, in whatever phase it fails and whatever the others do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml
from golden_cases import configuration, project
from stage_cases import ROOT

from rlanything.planning import dvcfile

HERE = Path(__file__).parent
SECONDS = 120.0
"""From the failure to the end of the command. The other seed would go on for 600."""
CONFIG = configuration(train__seeds=2, train__workers=2)
TRAIN = [sys.executable, "-m", "rlanything", "train", "--arm", "full"]
REPRO = [sys.executable, "-m", "dvc", "repro", "--single-item", "train@full"]


@pytest.fixture
def root(tmp_path) -> Path:
    """A project with tasks, tiny models and the configuration of two seeds side by side."""
    folder = project(tmp_path / "project")
    data = CONFIG.model_dump(mode="json", by_alias=True)
    (folder / "params.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    return folder


@pytest.mark.long
@pytest.mark.parametrize(
    "phase",
    ["learn", *(pytest.param(p, marks=pytest.mark.slow) for p in ("load", "rollout", "publish", "export"))],
)
def test_a_seed_that_fails_ends_the_training_at_once(root, phase):
    code, said = fails(root, TRAIN, phase)
    assert code == 2
    last = said.splitlines()[-1]
    if phase == "publish":  # the failing seed found a file in the place of its iteration
        assert last.startswith("rlanything: this iteration is published already: ")
        assert last.endswith("seed-1/iterations/0000")
    else:
        assert last == f"rlanything: seed 1 fails in the phase {phase}"
    assert not (root / "runs" / "full").exists()


@pytest.mark.slow
@pytest.mark.integration
def test_a_seed_that_fails_ends_the_stage_of_dvc_at_once(root):
    (root / "experiments").unlink()
    for name in ("envs", "experiments", "rlanything"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".dvc").mkdir()
    (root / ".dvc" / "config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (root / "dvc.yaml").write_text(dvcfile.text(CONFIG))
    code, said = fails(root, REPRO, "learn")
    assert code != 0
    assert "rlanything: seed 1 fails in the phase learn\n" in said
    assert "failed to reproduce 'train@full'" in said


def fails(root: Path, command: list[str], phase: str) -> tuple[int, str]:
    """Run a command in which seed 1 fails in a phase, while seed 0 is in the same phase. Its exit code and stderr.

    The command must end soon after the failure, and leave no process.
    """
    meeting = root / "meeting"
    meeting.mkdir()
    with started(root, command, PHASE=phase, MEETING=str(meeting)) as process:
        said = process.communicate(timeout=300)[1]
        took = time.time() - (meeting / "failed").stat().st_mtime
        assert {path.name for path in meeting.iterdir()} == {"seed-0", "seed-1", "failed"}, said
        left = psutil.wait_procs(session(process.pid), timeout=60)[1]  # multiprocessing's tracker ends last
        assert left == []
    assert took < SECONDS
    return process.returncode, said


@contextmanager
def started(root: Path, command: list[str], **settings: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a session of its own. All processes of the session are gone at the end."""
    environment = {
        **os.environ,
        **settings,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{HERE / 'failing_seed'}{os.pathsep}{ROOT}",
    }
    with subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            for member in session(process.pid):
                member.kill()


def session(leader: int) -> list[psutil.Process]:
    """The living processes of a session."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found
