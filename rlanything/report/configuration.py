"""The settings a report was made with, and which of them differ from their defaults."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rlanything.config import Config

Row = tuple[str, str, str]
"""(dotted name, value, default where there is one and it differs, else '')."""
SECTIONS = ("tasks", "model", "rollout", "judge", "signals", "adaptation", "learn", "train", "evaluate")
"""What is shown. `env` and `engine` are shown by class name only: their options may hold private keys or paths."""
HIDDEN = ("train.loggers", "train.callbacks")
"""They change no result, and their options may hold private keys or paths."""


def rows(config: Config) -> list[Row]:
    """Every number of the experiment by its dotted name, in the order of the configuration."""
    head = [
        ("seed", str(config.seed), ""),
        ("scale", config.scale, ""),
        ("env", str(config.env["_target_"]), ""),
        ("engine", str(config.engine["_target_"]), ""),
    ]
    fields = dict(config)
    return head + [row for section in SECTIONS for row in _section(section, fields[section])]


def differing(config: Config) -> list[Row]:
    """The rows whose value is not the default."""
    return [row for row in rows(config) if row[2]]


def _section(prefix: str, section: BaseModel) -> Iterator[Row]:
    fields = type(section).model_fields
    for name, value in section:
        dotted = f"{prefix}.{fields[name].alias or name}"
        if isinstance(value, BaseModel):
            yield from _section(dotted, value)
        elif dotted not in HIDDEN:
            yield dotted, str(value), _default(fields[name], value)


def _default(field: FieldInfo, value: object) -> str:
    return "" if field.is_required() or field.default == value else str(field.default)
