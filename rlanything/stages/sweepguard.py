"""Stops a sweep when code, experiments/, tasks or base models change under it: its trials could not be compared.

Every trial composes from experiments/ as it lies there, and every command imports the code as it lies there. So a
worker looks before it starts a command and before it records a result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from rlanything.config import ConfigError
from rlanything.stages import compose
from rlanything.stages.sweepkey import Key
from rlanything.stages.sweeptrial import Inputs, overrides
from rlanything.stages.sweepworker import SweepError
from rlanything.sweep.declare import Sweep


def guard(sweep: Sweep, inputs: Inputs, began: Key) -> Callable[[], None]:
    """What raises `SweepError`, naming every change, when the trials have something else in common than `began`."""

    def check() -> None:
        found = _changes(sweep, inputs, began)
        if found:
            raise SweepError(
                f"changed while the sweep ran (there: when it began, here: now): {found}. "
                "Trials before and after it cannot be compared. Undo the change, and the same command goes on; "
                "with it, the command begins a study of its own"
            )

    return check


def _changes(sweep: Sweep, inputs: Inputs, began: Key) -> str:
    try:
        now = Key.of(sweep, compose.compose(overrides(sweep, {}, sweep.seeds), inputs.root), inputs)
    except (ConfigError, FileNotFoundError) as error:
        return str(error)
    return now.words(asdict(began))
