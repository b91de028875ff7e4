"""What a sandbox refuses before any work: limits, arguments, and back ends that are not there."""

from dataclasses import replace

import pytest
from sandbox_cases import LIMITS

from envs.coding.sandbox import Job, Limits, SandboxError, Stdio, open_sandbox

BAD = {
    "cpu_s": (0, "limits.cpu_s: 0 must be a number above 0"),
    "wall_s": (1, "limits.wall_s: 1 must be at least limits.cpu_s = 2.0"),
    "memory_mb": (16, "limits.memory_mb: 16 must be at least 64"),
    "processes": (1.5, "limits.processes: 1.5 must be a number above 0"),
    "open_files": (True, "limits.open_files: True must be a number above 0"),
    "output_kb": ("9", "limits.output_kb: '9' must be a number above 0"),
    "files": (float("inf"), "limits.files: inf must be a number above 0"),
}


@pytest.mark.parametrize("key", BAD)
def test_bad_limits_are_named(key):
    value, message = BAD[key]
    with pytest.raises(ValueError, match="limits") as caught:
        Limits(**{key: value})
    assert str(caught.value) == message


def test_bad_arguments_are_named(trusted):
    with pytest.raises(ValueError, match=r"backend: 'bwarp' is not one of .* \(did you mean bwrap\?\)"):
        open_sandbox("bwarp")
    with pytest.raises(ValueError, match="workers: 0 is not a whole number from 1 to 256"):
        open_sandbox("subprocess", workers=0, trusted=True)
    with pytest.raises(ValueError, match="workers: 257 is not a whole number from 1 to 256"):
        open_sandbox("subprocess", workers=257, trusted=True)
    with pytest.raises(ValueError, match="a job needs at least one test"):
        Job("pass", [])
    above = replace(LIMITS, memory_mb=LIMITS.memory_mb + 1)
    with pytest.raises(ValueError, match=r"limits.memory_mb: a job's 257 is above the sandbox's 256"):
        trusted.judge([Job("pass", [Stdio("")], limits=above)])


def test_what_is_missing_is_named(monkeypatch, tmp_path):
    with pytest.raises(SandboxError, match=r"is no sandbox: .* trusted=True"):
        open_sandbox("subprocess")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="apt install bubblewrap"):
        open_sandbox("bwrap")
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.4.1\n")
    old.chmod(0o755)
    with pytest.raises(SandboxError, match=r"bubblewrap 0.4.1 is too old: 0.8.0 or newer"):
        open_sandbox("bwrap")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(SandboxError, match=f"nothing answers as Docker at unix://{tmp_path}/none"):
        open_sandbox("docker")


@pytest.mark.long
def test_an_image_that_is_not_there_is_named(image):
    with pytest.raises(SandboxError, match=r"there is no image localhost/none: .*sandbox image"):
        open_sandbox("docker", image="localhost/none")
