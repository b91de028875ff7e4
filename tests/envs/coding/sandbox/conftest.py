"""Sandboxes for the tests; what is missing is skipped with what would help.

Containers are real: where nothing answers as Docker, root starts Debian's podman for the session, with its files in a
temporary folder. The image is made from the interpreter that runs the tests.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from sandbox_cases import BACKENDS, LIMITS, TAG, opened

from envs.coding.sandbox import SandboxError, open_sandbox
from envs.coding.sandbox.backends.container import connect
from envs.coding.sandbox.backends.image import make

START_S = 30


@pytest.fixture(scope="session")
def image():
    """An image on a Docker socket, which DOCKER_HOST then names."""
    try:
        client = connect()
    except SandboxError as error:
        missing = [name for name in ("podman", "runc") if shutil.which(name) is None]
        if missing or os.getuid() != 0:
            pytest.skip(f"docker: {error}; or be root with: apt install podman runc")
        # podman takes no folder whose name is longer than 50 characters, as those of tests side by side are
        with tempfile.TemporaryDirectory(prefix="podman-", ignore_cleanup_errors=True) as folder:
            yield from serve_podman(Path(folder))
        return
    yield make(client, TAG)
    client.close()


def serve_podman(folder):
    """Docker's API by podman. runc: the default crun does not start where cgroups are of the old kind."""
    conf, address = folder / "containers.conf", f"unix://{folder}/socket"
    conf.write_text('[engine]\nruntime = "runc"\n')
    before = os.environ.get("DOCKER_HOST")
    podman = ["podman", "--root", str(folder / "root"), "--runroot", str(folder / "run")]
    with open(folder / "log", "wb") as log:
        service = subprocess.Popen(
            [*podman, "system", "service", "--time", "0", address],
            env={**os.environ, "CONTAINERS_CONF": str(conf)},
            cwd=folder,  # where it leaves a file when a container runs out of memory
            stdout=log,
            stderr=log,
        )
    os.environ["DOCKER_HOST"] = address
    try:
        yield make(answering(service, folder), TAG)
    finally:
        service.terminate()
        service.wait()
        subprocess.run(["umount", str(folder / "root" / "overlay")], capture_output=True, check=False)
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before


def answering(service, folder):
    """A client, once the service answers."""
    for _ in range(START_S * 10):
        try:
            return connect()
        except SandboxError:
            assert service.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
    raise AssertionError((folder / "log").read_text())


@pytest.fixture(scope="module", params=BACKENDS)
def box(request):
    with opened(request, request.param) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def bwrap(request):
    with opened(request, "bwrap") as sandbox:
        yield sandbox


@pytest.fixture
def trusted():
    with open_sandbox("subprocess", workers=2, limits=LIMITS, trusted=True) as sandbox:
        yield sandbox
