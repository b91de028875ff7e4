"""Runs a check to its end, and says how far it is: one that trains arms of its own, or measures finished runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from rlanything.checks.workspace import Workspace
from rlanything.core.errors import ConfigError
from rlanything.files import atomic, locks
from rlanything.runs.workers import run_all


@contextmanager
def finished(space: Workspace, check: str) -> Iterator[None]:
    """Do every task that is still to do, one after the other. The workspace is locked until the block ends.

    check: what it is, for messages: `ladder fitness`.
    """
    atomic.make(space.root)
    with locks.held(space.root / "lock", f"{space.root}: another process runs this check"):
        space.prepare()
        left = list(space.tasks())
        _require_as_it_was(space)
        for number, task in enumerate(left, 1):
            say(check, f"{number} of {len(left)}: {task.title}")
            task.work()
            _require_as_it_was(space)
        yield


def _require_as_it_was(space: Workspace) -> None:
    """Raise `ConfigError` where the project is not the one that the workspace is named after."""
    if not space.is_current():
        raise ConfigError(
            f"{space.root}: code, configuration, tasks or base models of {space.project} were changed while "
            "the check ran, so its arms could not be compared. Undo the change, and the same command goes on; "
            "with it, the command begins anew"
        )


class Part(Protocol):
    """What one process of a check measures, for example a finished run."""

    @property
    def done(self) -> bool:
        """Whether its measurement is there."""
        ...


@contextmanager
def measured(
    check: str,
    folder: Path,
    parts: Sequence[Part],
    what: str,
    measure: Callable[..., None],
    given: Sequence[Any],
    workers: int,
) -> Iterator[None]:
    """Measure every part that is still to do. The folder is locked until the block ends.

    Args:
        check: what it is, for messages: `corruption mine`.
        folder: where the measurements lie.
        parts: all of them.
        what: words for those that are done: `runs are measured`.
        measure: called with `given` and a part, in a process of its own, so that models and sandboxes go with it.
        given: its first arguments.
        workers: parts at once; changes no result.
    """
    atomic.make(folder)
    with locks.held(folder / "lock", f"{folder}: another process runs this check here"):
        left = [part for part in parts if not part.done]
        say(check, f"{len(parts) - len(left)} of {len(parts)} {what}")
        run_all(measure, [(*given, part) for part in left], workers)
        yield


def print_tasks(space: Workspace, check: str) -> None:
    """Print what a check would do."""
    print(f"{check}: {space.declared.seeds} seeds, in {space.root}")
    for task in space.tasks():
        print(f"  {task.title}")


def say(check: str, text: str) -> None:
    """Report progress."""
    print(f"{check}: {text}", file=sys.stderr, flush=True)
