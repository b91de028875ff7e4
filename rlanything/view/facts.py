"""What a page says about a run as a whole, and by what notes on it are kept."""

from __future__ import annotations

from rlanything import __version__
from rlanything.core.types import Json
from rlanything.rewards.kind import name_of
from rlanything.rollouts.origin import fingerprint_of
from rlanything.rollouts.runs import NamedRun


def facts(run: NamedRun) -> dict[str, Json]:
    """The run, its state, by what its replies became rewards, and its identity."""
    terms = run.terms
    return {
        "run": run.name,
        "identity": identity(run),
        "state": "finished" if run.finished else "in training",
        "version": __version__,
        "writes": name_of(terms),
        "lambda": terms.arm.lambda_of(terms.signals),
        "uses_outcome": terms.arm.outcome,
        "trains_reward_model": terms.arm.train_reward,
    }


def identity(run: NamedRun) -> str:
    """The fingerprint of the run with its arm and seed. Raises `ConfigError` for a record that cannot be read."""
    return f"{fingerprint_of(run)}/{run.name}"
