"""Runs a check that trains arms of its own to its end, and says how far it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rlanything.checks.workspace import Task, Workspace
from rlanything.core.errors import ConfigError
from rlanything.files import atomic, locks


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
            _do(space, task)
        yield


def _do(space: Workspace, task: Task) -> None:
    """Do a task. What it made goes where the project changed meanwhile: nobody could say of which code it is."""
    try:
        task.work()
        _require_as_it_was(space)
    except BaseException:
        task.forget()
        raise


def _require_as_it_was(space: Workspace) -> None:
    """Raise `ConfigError` where the project is not the one that the workspace is named after."""
    if not space.is_current():
        raise ConfigError(
            f"{space.root}: code, configuration, tasks or base models of {space.project} were changed while "
            "the check ran, so its arms could not be compared. Undo the change, and the same command goes on; "
            "with it, the command begins anew"
        )


def print_tasks(space: Workspace, check: str) -> None:
    """Print what a check would do."""
    print(f"{check}: {space.declared.seeds} seeds, in {space.root}")
    for task in space.tasks():
        print(f"  {task.title}")


def say(check: str, text: str) -> None:
    """Report progress."""
    print(f"{check}: {text}", file=sys.stderr, flush=True)
