"""From the name of a back end to a running sandbox."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from envs.coding.sandbox.bwrap import Bubblewrap
from envs.coding.sandbox.container import Containers
from envs.coding.sandbox.launch import Backend
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.trusted import Trusted
from envs.coding.sandbox.types import Limits

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

    `trusted`: the programs may run without a sandbox (only read by `subprocess`, which refuses to start otherwise).
    `image`: what containers are made of (only read by `docker`); any with `python3` 3.11 or newer.
    `packages`: a site-packages folder of this interpreter's version that programs may import from (only read by
    `bwrap`; an image holds its own, and `subprocess` shows this project's).

    Raises `ValueError` for bad arguments and `SandboxError`, which says why and what would help, where the back end
    cannot run.
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
            return Trusted(trusted)
    near = get_close_matches(str(name), BACKENDS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"backend: {name!r} is not one of {', '.join(BACKENDS)}{hint}")
