"""Starts what the section `executor` names, and ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rlanything.config import Config
from rlanything.core.printable import say
from rlanything.loop.share import hosted
from rlanything.runs.executors.cluster import connected
from rlanything.runs.executors.crew import Crew
from rlanything.runs.executors.dispatcher import Dispatcher
from rlanything.runs.executors.pool import Pool
from rlanything.runs.executors.worker import ConfiguredWorker, code_of


@contextmanager
def opened(config: Config) -> Iterator[None]:
    """In the block, the environments of `config.env` run where `config.executor` says.

    Raises `ConfigError`, and `MachineError` when no worker starts.
    """
    settings = config.executor
    if settings.form == "inline":
        yield
        return
    with ExitStack() as stack:
        crew = Crew(_pool(config, stack), settings, code_of(config.env), say)
        stack.callback(crew.close)
        crew.start()
        stack.enter_context(hosted(Dispatcher(crew, settings)))
        yield


def _pool(config: Config, stack: ExitStack) -> Pool:
    settings, make = config.executor, ConfiguredWorker(config.env)
    if settings.form == "processes":
        from rlanything.runs.executors.processes import ProcessPool

        processes = ProcessPool(make)
        stack.callback(processes.close)
        return processes
    from rlanything.runs.executors.actors import ActorPool

    return ActorPool(stack.enter_context(connected(settings)), make, settings.cpus)
