"""How the servers of a model are run: what the section `engine` says of them, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rlanything.engines.vllm.support import UnsupportedError

SCHEME = "ray://"
"""How the address of a Ray cluster begins."""


@dataclass(frozen=True)
class Serving:
    """Which servers there are and how long they may take: what only the section `engine` of servers has, checked.

    replicas: servers of one model. A session stays at one of them.
    addresses: of servers that somebody else has started and ends; (): they are started here. The processes of a
        training divide them. One that begins with ray:// is that of a Ray cluster, which places them on its nodes.
    folder: where weights are written for the servers, as all of them see it; None: a temporary folder.
    start_s: the longest time that a server may take to come up, seconds.
    request_s: the longest time in which a server answers none of its requests, seconds. Then it is lost.
    restarts: how many servers may be lost, with no answer between the losses, before the run ends. One that is lost
        because other weights sampled counts also with answers between.
    batch_invariant: whether servers on a GPU have kernels that give a request the same bits in any batch.

    Raises `UnsupportedError` for values that are not allowed.
    """

    replicas: int = 1
    addresses: Sequence[str] = ()
    folder: str | None = None
    start_s: float = 900.0
    request_s: float = 600.0
    restarts: int = 3
    batch_invariant: bool = False

    @property
    def cluster(self) -> str | None:
        """HOST:PORT of the Ray cluster that places the servers; None: none does."""
        first = str(self.addresses[0]) if self.addresses else ""
        return first.removeprefix(SCHEME) if first.startswith(SCHEME) else None

    def __post_init__(self) -> None:
        for name, count, least in (("replicas", self.replicas, 1), ("restarts", self.restarts, 0)):
            if isinstance(count, bool) or not isinstance(count, int) or count < least:
                raise UnsupportedError(f"{name} = {count!r}: must be a whole number of at least {least}")
        for name, seconds in (("start_s", self.start_s), ("request_s", self.request_s)):
            number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not number or not 0 < seconds < float("inf"):
                raise UnsupportedError(f"{name} = {seconds!r}: must be a number of seconds above 0")
        self._check_addresses()
        self._check_invariant()
        named = self.folder is None or (isinstance(self.folder, str) and Path(self.folder).is_absolute())
        if not named:
            raise UnsupportedError(
                f"folder = {self.folder!r}: must begin with /, because servers have folders of their own"
            )

    def _check_addresses(self) -> None:
        addresses = self.addresses
        if isinstance(addresses, str) or not isinstance(addresses, Sequence):
            example = addresses if isinstance(addresses, str) else "http://HOST:PORT"
            raise UnsupportedError(f"addresses = {addresses!r}: must be a list, such as [{example}]")
        if any(str(address).startswith(SCHEME) for address in addresses):
            self._check_cluster()
            return
        servers = {_server(str(address)) for address in addresses}
        if len(servers) < len(addresses):
            raise UnsupportedError("addresses: one is given twice")
        if 0 < len(addresses) < self.replicas:
            raise UnsupportedError(
                f"addresses: {len(addresses)} of them, for replicas = {self.replicas} servers of each model"
            )

    def _check_invariant(self) -> None:
        if not isinstance(self.batch_invariant, bool):
            raise UnsupportedError(f"batch_invariant = {self.batch_invariant!r}: must be true or false")
        if self.batch_invariant and self.addresses and not self.cluster:
            raise UnsupportedError(
                "batch_invariant = True: the servers of `addresses` have the kernels that they were started with; set "
                "it to false, and start them with VLLM_BATCH_INVARIANT=1"
            )

    def check_device(self, device: str) -> None:
        """Raise `UnsupportedError` where a kind of device, `cpu` or `cuda`, lacks what is asked for."""
        if self.batch_invariant and device != "cuda":
            raise UnsupportedError(
                f"batch_invariant = True: vLLM has such kernels for GPUs alone, and the models are on {device}"
            )

    def _check_cluster(self) -> None:
        """A cluster is the only address, and its nodes read weights from one folder."""
        if len(self.addresses) > 1:
            raise UnsupportedError(
                f"addresses: a cluster, {SCHEME}HOST:PORT, must be the only one, got {len(self.addresses)}"
            )
        _server(f"http://{self.cluster}", f"{SCHEME}HOST:PORT")
        if self.folder is None:
            raise UnsupportedError(
                f"folder = None: Ray places servers on any node (addresses = {list(self.addresses)}), so it must be a "
                "folder that all nodes see, such as /shared/weights"
            )


def _server(address: str, form: str = "http://HOST:PORT") -> tuple[str | None, int | None]:
    """Host and port, by which two ways to write an address are the same. Raises `UnsupportedError` for other forms."""
    try:
        parts = urlsplit(address)
        server = parts.hostname, parts.port
    except ValueError:
        server = None, None
    whole = all(part is not None for part in server) and parts.scheme == "http"
    if not whole or parts.path.strip("/") or any(mark in address for mark in "@?#"):
        raise UnsupportedError(f"addresses: {address!r} must have the form {form}")
    return server
