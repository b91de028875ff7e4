"""The back end `docker`: an interpreter in a container, over any local socket with Docker's API."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from envs.coding.sandbox.backends.box import ENVIRONMENT, Box, python_command
from envs.coding.sandbox.backends.seccomp import compile_filter
from envs.coding.sandbox.types import MIB, Limits, SandboxError

IMAGE = "python:3.11-slim"
USER = "60000:60000"
WORK = "/tmp"
CLOSED = dict.fromkeys(("/run", "/var/tmp"), "ro,nosuid,nodev,noexec,size=4096,mode=0555")
"""Podman mounts these writable even in a read-only container."""
HEADER = 8
"""Bytes before every piece of output: stream, three zeros, length (big-endian)."""
STDERR = 2
LAST_WORDS = 2000
READ = 1 << 20
SLACK_MB = 64
"""Memory for the watcher and for the kernel's own records."""
SLACK_PIDS = 4


class Containers:
    """Containers without network, capabilities and writable root, with limits on memory and processes.

    A container may use twice the memory of a program, so that the watcher sees an excess before the kernel kills
    something: the watcher knows whose fault it is.
    """

    sealed = True

    def __init__(self, limits: Limits, image: str | None) -> None:
        self._image = image or IMAGE
        self._limits = limits
        self._client = connect()
        self._errors = _package().errors
        try:
            self._require_image()
        except SandboxError:
            self._client.close()
            raise
        self._filter = _filter()

    def start(self) -> tuple[Box, Mapping[str, Any]]:
        """See `Backend`."""
        settings = {"uid": None, "filter": self._filter, "folder": WORK, "count_processes": False}
        container = None
        try:
            container = self._client.containers.create(
                self._image, python_command("python3"), **self._options()
            )
            return ContainerBox(container, self._errors), settings
        except (self._errors.DockerException, OSError) as error:
            if container is not None:
                container.remove(force=True)
            raise SandboxError(f"no container starts: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _require_image(self) -> None:
        with refusals(f"the image {self._image[:200]!r} cannot be looked up"):
            try:
                self._client.images.get(self._image)
            except self._errors.ImageNotFound as error:
                raise SandboxError(
                    f"there is no image {self._image}: docker pull {self._image}, or make one from this machine's "
                    "interpreter (Linux only): python -m envs.coding.sandbox image"
                ) from error

    def _options(self) -> dict[str, Any]:
        limits, ulimit = self._limits, _package().types.Ulimit
        memory = (2 * limits.memory_mb + limits.disk_mb + SLACK_MB) * MIB
        return {
            "user": USER,
            "environment": {**ENVIRONMENT, "PATH": "/usr/local/bin:/usr/bin:/bin"},
            "working_dir": WORK,
            "entrypoint": [],
            "stop_signal": "SIGKILL",
            "stdin_open": True,
            "auto_remove": True,
            "network_mode": "none",
            "ipc_mode": "none",
            "read_only": True,
            "tmpfs": {WORK: f"rw,nosuid,nodev,size={limits.disk_mb * MIB},mode=1777", **CLOSED},
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "mem_limit": memory,
            "memswap_limit": memory,
            "pids_limit": limits.processes + SLACK_PIDS,
            # Explicit, because some daemons ask for more than their own hard limits.
            "ulimits": [
                ulimit(name="nofile", soft=1024, hard=1024),
                ulimit(name="nproc", soft=512, hard=512),
            ],
        }


class ContainerBox:
    """A running container and the socket to its standard streams. It ends when the socket is closed."""

    def __init__(self, container: Any, errors: Any) -> None:
        self._container, self._errors = container, errors
        wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self._socket = container.attach_socket(params=wanted)
        self._end = self._socket.fileno()
        os.set_blocking(self._end, False)
        self._arrived, self._words = bytearray(), bytearray()
        container.start()

    def ends(self) -> tuple[int, int]:
        """See `Box`."""
        return self._end, self._end

    def receive(self) -> bytes:
        """See `Box`. Raises BlockingIOError while no whole piece of standard output is there."""
        part = os.read(self._end, READ)
        self._arrived += part
        output = bytearray()
        while len(self._arrived) >= HEADER:
            size = int.from_bytes(self._arrived[4:HEADER], "big")
            if len(self._arrived) < HEADER + size:
                break
            (self._words if self._arrived[0] == STDERR else output).extend(
                self._arrived[HEADER : HEADER + size]
            )
            del self._arrived[: HEADER + size]
        if part and not output:
            raise BlockingIOError
        return bytes(output)

    def send(self, data: memoryview) -> int:
        """See `Box`."""
        try:
            return os.write(self._end, data)
        except BlockingIOError:
            return 0

    def close(self) -> str:
        """See `Box`."""
        self._socket.close()
        try:
            self._container.remove(force=True)
        except self._errors.NotFound:
            pass  # it ended and was removed by itself
        except self._errors.APIError as error:
            if error.status_code != 409:  # it is being removed
                raise SandboxError(f"a container cannot be removed: {error}") from error
        return self._words.decode("utf-8", "replace")[-LAST_WORDS:].strip()


def connect() -> Any:
    """A client for the socket that DOCKER_HOST names, or the usual one. Raises `SandboxError`."""
    docker = _package()
    try:
        client = docker.from_env(timeout=60)
        client.ping()
    except (docker.errors.DockerException, OSError) as error:
        where = os.environ.get("DOCKER_HOST", "the usual socket")
        raise SandboxError(
            f"nothing answers as Docker at {where} (DOCKER_HOST names another): {error}"
        ) from error
    if client.api.base_url.startswith("https"):
        raise SandboxError("the back end 'docker' needs a local socket, not TLS")
    return client


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Turns errors of Docker's API into `SandboxError`. what: what could not be done."""
    try:
        yield
    except (_package().errors.DockerException, OSError) as error:
        raise SandboxError(f"{what}: {error}") from error


def _package() -> Any:
    try:
        import docker
    except ImportError as error:
        raise SandboxError("the package 'docker' is missing: pip install 'rlanything[coding]'") from error
    return docker


def _filter() -> str:
    """Our filter, in addition to the daemon's; '' where libseccomp is missing, as on a Mac."""
    try:
        return base64.b64encode(compile_filter()).decode()
    except SandboxError:
        return ""
