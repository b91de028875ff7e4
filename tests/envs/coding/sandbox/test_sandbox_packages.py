"""Packages that a sandbox shows to programs: there to be imported, not to be changed, and in no other sandbox."""

from pathlib import Path

import pytest
from sandbox_cases import LIMITS

from envs.coding.sandbox import Job, SandboxError, Status, Stdio, open_sandbox
from envs.coding.sandbox.backends.bwrap import PACKAGES

IMPORT = "import lent\nprint(lent.WORD)"
WRITE = f"""
import lent
for path in (lent.__file__, {PACKAGES!r} + "/more.py"):
    try:
        open(path, "w")
    except OSError as error:
        print(type(error).__name__)
"""


def outcomes(packages, *programs):
    jobs = [Job(program, [Stdio("")]) for program in programs]
    try:
        with open_sandbox(workers=1, limits=LIMITS, packages=packages) as sandbox:
            return [verdict.outcomes[0] for verdict in sandbox.judge(jobs)]
    except SandboxError as error:
        pytest.skip(str(error))


def test_packages_can_be_imported_and_not_changed(tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages/lent.py").write_text("WORD = 'here'")
    imported, written = outcomes(Path(tmp_path, "packages"), IMPORT, WRITE)
    assert (imported.status, imported.output) == (Status.OK, "here\n"), imported.error
    assert (written.status, written.output) == (Status.OK, "OSError\nOSError\n"), written.error
    assert (tmp_path / "packages/lent.py").read_text() == "WORD = 'here'"


def test_without_them_there_is_the_standard_library(tmp_path):
    found = outcomes(None, IMPORT, f"import os\nprint(os.path.exists({PACKAGES!r}))")
    assert "No module named 'lent'" in found[0].error
    assert found[1].output == "False\n"
