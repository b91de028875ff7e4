"""The settings a report was made with, beside those of the paper's experiment or of its reference code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel

from rlanything.config import Config
from rlanything.config.sources import Setting, row_for, same, setting_of

SECTIONS = ("tasks", "model", "rollout", "judge", "signals", "adaptation", "learn", "train", "evaluate")
"""What is shown. `env` and `engine` are shown by class name only, and endpoints by their model: other options may hold
private paths and addresses."""
HIDDEN = ("train.loggers", "train.callbacks")
"""They change no result, and their options may hold private keys or paths."""


@dataclass(frozen=True)
class Row:
    """One setting."""

    name: str
    value: str
    source: str
    """Everything that `rlanything.config.sources` says about it."""
    reference: str = ""
    """The paper's value, else the reference code's; empty where neither has one."""
    place: str = ""
    """Where that value stands: `paper, C.1`."""
    differs: bool = False


def rows(config: Config) -> list[Row]:
    """Every number of the experiment by its dotted name, in the order of the configuration."""
    setting, fields = setting_of(config), dict(config)
    named = {"seed": config.seed, "scale": config.scale}
    head = [_row(name, value, setting) for name, value in named.items()]
    classes = [_row(f"{name}._target_", fields[name]["_target_"], setting) for name in ("env", "engine")]
    classes += [
        _row(f"endpoints.{role}.model", endpoint.model, setting)
        for role, endpoint in config.endpoints.served.items()
    ]
    return (
        head + classes + [row for section in SECTIONS for row in _section(section, fields[section], setting)]
    )


def _section(prefix: str, section: BaseModel, setting: Setting) -> Iterator[Row]:
    fields = type(section).model_fields
    for name, value in section:
        dotted = f"{prefix}.{fields[name].alias or name}"
        if isinstance(value, BaseModel):
            yield from _section(dotted, value, setting)
        elif isinstance(value, dict) and value and all(isinstance(v, BaseModel) for v in value.values()):
            for key, inside in value.items():
                yield from _section(f"{dotted}.{key}", inside, setting)
        elif dotted not in HIDDEN:
            yield _row(dotted, value, setting)


def _row(name: str, value: object, setting: Setting) -> Row:
    found = row_for(name)
    if found is None:
        return Row(name, str(value), "")
    source = found.source(setting)
    stated = source.reference
    if stated is None:
        return Row(name, str(value), source.text())
    place = f"{'paper' if source.paper else 'reference code'}, {stated.where}"
    differs = not same(value, stated.value)
    return Row(name, str(value), source.text(), str(stated.value), place, differs)
