"""Opens a sandbox by the name of its back end."""

from __future__ import annotations

from pathlib import Path

from envs.coding.sandbox.backends.box import Backend
from envs.coding.sandbox.backends.bwrap import Bubblewrap
from envs.coding.sandbox.backends.container import Containers
from envs.coding.sandbox.backends.unsandboxed import Unsandboxed
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.types import Limits
from envs.settings import not_one_of

BACKENDS = ("bwrap", "docker", "subprocess")


def open_sandbox(
    backend: str = "bwrap",
    *,
    workers: int = 2,
    limits: Limits | None = None,
    trusted: bool = False,
    image: str | None = None,
    packages: Path | None = None,
) -> Sandbox:
    """A sandbox with `workers` boxes.

    `trusted`: allow programs to run without isolation; only for `subprocess`, which refuses to start otherwise.
    `image`: the image of the containers; only for `docker`. It needs `python3` 3.11 or newer.
    `packages`: a site-packages folder of this interpreter's version that programs may import from; only for `bwrap`.

    Raises `ValueError` for bad arguments, and `SandboxError` where the back end cannot run.
    """
    limits = limits or Limits()
    return Sandbox(_backend(backend, limits, trusted, image, packages), workers, limits)


def _backend(name: str, limits: Limits, trusted: bool, image: str | None, packages: Path | None) -> Backend:
    match name:
        case "bwrap":
            return Bubblewrap(limits, packages)
        case "docker":
            return Containers(limits, image)
        case "subprocess":
            return Unsandboxed(trusted)
    raise ValueError(f"backend: {not_one_of(name, BACKENDS)}")
