"""What a page says about a run as a whole, and by what notes on it are kept."""

from __future__ import annotations

from rlanything import __version__
from rlanything.core.types import Json
from rlanything.files.reader import read_object
from rlanything.rewards.kind import name_of
from rlanything.rollouts.runs import NamedRun
from rlanything.runs import origins, provenance
from rlanything.runs.fingerprint import Origin


def facts(run: NamedRun) -> dict[str, Json]:
    """The run, its state, by what its replies became rewards, and its identity."""
    terms = run.terms
    return {
        "run": run.name,
        "identity": identity(run),
        "state": "finished" if run.finished else "in training",
        "version": __version__,
        "writes": name_of(terms),
        "lambda": terms.signals.lambda_,
        "uses_outcome": terms.arm.outcome,
        "trains_reward_model": terms.arm.train_reward,
    }


def identity(run: NamedRun) -> str:
    """The fingerprint of the run with its arm and seed: the same while it trains and afterwards, and on every machine.

    Raises `ConfigError` for a record that cannot be read."""
    arm = run.stored.folder.parent
    if run.finished:
        fingerprint = provenance.read(run.root, arm.name)["fingerprint"]
    else:
        origin = read_object(arm / origins.FILE)
        parts = (origin.get(name, {}) for name in ("config", "code", "inputs", "packages"))
        fingerprint = Origin(*parts).fingerprint
    return f"{fingerprint}/{run.name}"
