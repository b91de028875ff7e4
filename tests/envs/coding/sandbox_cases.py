"""How tests open a sandbox: its limits, which backends there are, and a skip where one is missing."""

import pytest

from envs.coding.sandbox import Limits, SandboxError, open_sandbox

LIMITS = Limits(cpu_s=1, wall_s=3, memory_mb=256, output_kb=256, file_mb=4, disk_mb=16, files=500)
TAG = "localhost/rlanything-sandbox:test"
BACKENDS = ["bwrap", pytest.param("docker", marks=pytest.mark.long), "subprocess"]
"""An image takes seconds to make, and a container to start. What a box does is checked on the others each time."""


def opened(request, backend, limits=LIMITS, workers=1):
    """A sandbox, or a skip that says what is missing; where an image could be made, nothing is."""
    if backend == "docker":
        return open_sandbox("docker", workers=workers, limits=limits, image=request.getfixturevalue("image"))
    try:
        return open_sandbox(backend, workers=workers, limits=limits, trusted=backend == "subprocess")
    except SandboxError as error:
        pytest.skip(f"{backend}: {error}")
