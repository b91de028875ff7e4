"""Where environments run: in the process that trains or measures, in worker processes, or on a Ray cluster."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlanything.config.section import Positive, Section

Seconds = Annotated[float, Field(gt=0, le=86400)]
ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")


class ExecutorConfig(Section):
    """Where environments run. Nothing in here changes a result, so no run depends on it (docs/workers.md)."""

    form: Literal["inline", "processes", "ray"] = "inline"
    workers: Annotated[int, Field(gt=0, le=4096)] = 2
    """Workers of each process that trains or measures."""
    bundle: Positive = 1
    """Most items of an order: moves of episodes, or tasks whose programs are examined."""
    patience_s: Seconds = 30.0
    """A worker that has not answered for so long is slow: others get its work as well."""
    timeout_s: Seconds = 1800.0
    """A worker that has not answered for so long is ended."""
    attempts: Annotated[int, Field(gt=0, le=100)] = 3
    """The run ends when the same order is lost as often, or when as many workers in a row do not start."""
    start_s: Seconds = 120.0
    """Longest wait for a worker to start."""
    address: str | None = None
    """Of Ray: host:port of the cluster's head; None: a Ray of its own is started on this machine."""
    cpus: Annotated[float, Field(ge=0, le=1024)] = 1.0
    """Of Ray: CPUs that Ray reserves for a worker."""

    @model_validator(mode="after")
    def _is_address(self) -> ExecutorConfig:
        if self.address is None:
            return self
        if self.form != "ray":
            raise ValueError(f"address = {self.address!r}: only for form = 'ray' (executor=ray)")
        found = ADDRESS.fullmatch(self.address)
        if found is None or not 0 < int(found[2]) < 65536:
            raise ValueError(
                f"address = {self.address!r}: must be host:port of the cluster's head, e.g. ray-head:6379, or null. "
                "Addresses of Ray's client (ray://) are not supported: start the command on a node of the cluster"
            )
        return self

    @model_validator(mode="after")
    def _is_consistent(self) -> ExecutorConfig:
        if self.patience_s >= self.timeout_s:
            raise ValueError(
                f"patience_s = {self.patience_s:g} must be below timeout_s = {self.timeout_s:g}: a slow worker is "
                "helped before it is ended"
            )
        return self
