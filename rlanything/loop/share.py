"""Where work is divided: what asks a model among the processes of a run, what asks an environment among workers.

Under torchrun, `shared` divides rollouts, votes and rewrites: each process does a share and gets all results. Every
sample has its own seed (`core.seeds`), so any process can draw it. The results are exchanged and not computed in
every process, because processors may round differently.

`host_of` says who runs the environments of this process: itself, or the workers of its executor (`runs.executors`).
Environments round nothing, so their answers are the same everywhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

from rlanything.core.errors import MachineError
from rlanything.core.protocols import TaskFamily
from rlanything.core.unittests import Examiner
from rlanything.loop.episodes import Host, LocalHost

if TYPE_CHECKING:
    from torch.distributed import Store

Work = TypeVar("Work")
Result = TypeVar("Result")
_HOST: ContextVar[Host | None] = ContextVar("host", default=None)


LOST = (
    "another process of this run has ended or cannot be reached; its own output, and the summary of torchrun, say why. "
    "What is finished is kept: the same command goes on from there"
)
LATE = (
    "another process of this run did not come within train.timeout_s: it is slow, or it hangs. What is finished is "
    "kept: the same command goes on from there, with a larger train.timeout_s too"
)
SAME_FOLDER = (
    "All of them must see the same project folder with the same configuration; several nodes need a file system that "
    "they share. What is finished is kept: start all of them again"
)
_TIMED_OUT = re.compile(r"[Tt]imed out waiting|collective operation timeout|wait timeout after")
"""The words of gloo, of NCCL and of PyTorch's store."""


@contextmanager
def together() -> Iterator[None]:
    """Raise `MachineError` where a collective in the block fails because another process of the run is gone or late."""
    try:
        yield
    except RuntimeError as error:
        if not divided():
            raise
        from torch.distributed import DistError

        if isinstance(error, DistError) or "gloo" in str(error):
            raise _apart(error) from None
        raise


def _apart(error: RuntimeError) -> MachineError:
    """What an error says of the other processes."""
    why = LATE if _TIMED_OUT.search(str(error)) else LOST
    return MachineError(f"{why} ({str(error).partition('. ')[0]})")


def divided() -> bool:
    """Whether this process is one of several of a run. Who has not loaded torch is not: replay must not wait for it."""
    if "torch.distributed" not in sys.modules:
        return False
    import torch.distributed as processes

    return processes.is_available() and processes.is_initialized()


def wait_for_all(timeout_s: float) -> None:
    """Return when every process of the run has come here. Where nothing was divided yet, they are connected first.

    timeout_s: how long they wait for each other from then on. Raises `MachineError` when another one has ended.
    """
    import torch.distributed as processes

    if not processes.is_initialized():
        _connect(timeout_s)
    with together():
        processes.barrier()


@contextmanager
def connected(timeout_s: float) -> Iterator[None]:
    """In the block, this process and the others that torchrun started are those of one run.

    timeout_s: how long they wait for each other.
    """
    import torch.distributed as processes

    _connect(timeout_s)
    try:
        yield
    finally:
        processes.destroy_process_group()


def _connect(timeout_s: float) -> None:
    from torch.distributed import init_process_group

    init_process_group("gloo", timeout=timedelta(seconds=timeout_s))


def from_first(value: Result) -> Result:
    """The value that the first process of the run has, in every process. All of them must call it."""
    if not divided():
        return value
    import torch.distributed as processes

    values = [value]
    processes.broadcast_object_list(values)
    return values[0]


def announced(name: str, value: int | None, timeout_s: float) -> int:
    """The number of the first process, in every process that torchrun started. They need not be connected.

    name: of the number, which is told once. value: None in the other processes. timeout_s: how long those wait for it.
    Raises `MachineError` when it does not come, or when another process has ended.
    """
    from torch.distributed import DistError

    try:
        store = _store(timeout_s)
        if value is None:
            return int(store.get(name))
        store.set(name, str(value))
        return value
    except DistError as error:
        raise _apart(error) from None


@cache
def _store(timeout_s: float) -> Store:
    """What the processes are connected by. Without torchrun's own one the first process has it, as long as it runs."""
    from torch.distributed import rendezvous

    store, _, _ = next(iter(rendezvous("env://", timeout=timedelta(seconds=timeout_s))))
    return cast("Store", store)


def agree(place: Mapping[str, object]) -> None:
    """Raise `MachineError`, in all processes of the run, unless all of them are at the same place.

    place: what says which run it is and how far it has come. Work is divided by its position in a list, so processes at
    different places would mix what they collect. All of them must call it.
    """
    if not divided():
        return
    import torch.distributed as processes

    places: list[dict[str, object]] = [{} for _ in range(processes.get_world_size())]
    processes.all_gather_object(places, dict(place))
    for rank, other in enumerate(places):
        if other != places[0]:
            names = [name for name in other if other[name] != places[0].get(name)]
            own, theirs = (", ".join(f"{n} = {p.get(n)}" for n in names) for p in (places[0], other))
            raise MachineError(
                f"the processes of this run are not at the same place: rank {rank} has {theirs}; rank 0 has {own}. "
                f"{SAME_FOLDER}"
            )


@contextmanager
def hosted(host: Host) -> Iterator[None]:
    """In the block, `host` runs the environments."""
    before = _HOST.set(host)
    try:
        yield
    finally:
        _HOST.reset(before)


def current_host() -> Host | None:
    """The host of the block; None: this process runs its environments itself."""
    return _HOST.get()


def host_of(family: TaskFamily | Examiner) -> Host:
    """Who runs the environments of the family: the host of the block, or else this process."""
    return current_host() or LocalHost(family)


def shared(work: Sequence[Work], do: Callable[[Sequence[Work]], list[Result]]) -> list[Result]:
    """`do(work)`: one result for each item, in order. Under torchrun, process r of n does items r, r + n, r + 2n, ...

    All processes must call this with the same work. Raises `ValueError` when `do` returns another number of
    results.
    """
    if not divided():
        return _checked(do(work), len(work))
    import torch.distributed as processes

    rank, world = processes.get_rank(), processes.get_world_size()
    mine = _checked(do(work[rank::world]), len(work[rank::world]))
    parts: list[list[Result]] = [[] for _ in range(world)]
    processes.all_gather_object(parts, mine)
    return [parts[k % world][k // world] for k in range(len(work))]


def _checked(results: list[Result], expected: int) -> list[Result]:
    if len(results) != expected:
        raise ValueError(f"{len(results)} results for {expected} items of work")
    return results
