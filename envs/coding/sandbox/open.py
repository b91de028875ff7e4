"""From the name of a back end to a running sandbox."""

from __future__ import annotations

from difflib import get_close_matches

from envs.coding.sandbox.bwrap import Bubblewrap
from envs.coding.sandbox.launch import Backend
from envs.coding.sandbox.pool import Sandbox
from envs.coding.sandbox.trusted import Trusted
from envs.coding.sandbox.types import Limits

BACKENDS = ("bwrap", "subprocess")


def open_sandbox(
    backend: str = "bwrap", *, workers: int = 2, limits: Limits | None = None, trusted: bool = False
) -> Sandbox:
    """A sandbox with `workers` boxes. `trusted`: the programs may run without a sandbox (back end `subprocess`).

    Raises `ValueError` for bad arguments and `SandboxError`, which says why and what would help, where the back end
    cannot run.
    """
    limits = limits or Limits()
    return Sandbox(_backend(backend, limits, trusted), workers, limits)


def _backend(name: str, limits: Limits, trusted: bool) -> Backend:
    match name:
        case "bwrap":
            return Bubblewrap(limits)
        case "subprocess":
            return Trusted(trusted)
    near = get_close_matches(str(name), BACKENDS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ValueError(f"backend: {name!r} is not one of {', '.join(BACKENDS)}{hint}")
