"""The table: one row for every key of the configuration, or for a section whose keys all have the same source."""

from __future__ import annotations

from rlanything.config.sources.algorithm import ADAPTATION, JUDGE, LEARN, ROLLOUT, SIGNALS
from rlanything.config.sources.environment import ENGINE, ENVIRONMENT
from rlanything.config.sources.experiment import EVALUATE, GENERAL, MODEL, TASKS, TRAIN
from rlanything.config.sources.source import Row, Setting
from rlanything.core.types import Json

SOURCES: dict[str, Row] = {
    **GENERAL,
    **ENVIRONMENT,
    **ENGINE,
    **TASKS,
    **MODEL,
    **ROLLOUT,
    **JUDGE,
    **SIGNALS,
    **ADAPTATION,
    **LEARN,
    **TRAIN,
    **EVALUATE,
}
"""By dotted key."""


def paper_value(key: str, setting: Setting = "alfworld") -> Json:
    """What the paper has for a key. Raises `KeyError` where it has nothing."""
    statement = SOURCES[key].source(setting).paper
    if statement is None:
        raise KeyError(f"the paper has no value for {key}")
    return statement.value


def row_for(key: str) -> Row | None:
    """The row of a dotted key, else of the nearest section around it."""
    while key and key not in SOURCES:
        key = key.rpartition(".")[0]
    return SOURCES.get(key)
