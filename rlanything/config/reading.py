"""From a mapping or a file to the typed configuration, or to one error that lists every bad key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from rlanything.config.experiment import Config
from rlanything.core.errors import ConfigError, unknown
from rlanything.core.printable import shown
from rlanything.files.yaml_file import read_mapping

S = TypeVar("S", bound=BaseModel)


def parse(data: Mapping[str, Any]) -> Config:
    """`Config` from a plain mapping. Raises `ConfigError` listing every problem."""
    return validated(Config, data, "the configuration is not valid")


def validated(section: type[S], data: Mapping[str, Any], refusal: str) -> S:
    """A section from a plain mapping. Raises `ConfigError`: `refusal`, then every problem by its key."""
    try:
        return section.model_validate(dict(data))
    except ValidationError as error:
        problems = [_explain(dict(item), section) for item in error.errors()]
        raise ConfigError(f"{refusal}:\n" + "\n".join(f"  {p}" for p in problems)) from None


def load(path: Path) -> Config:
    """`Config` from a YAML file such as params.yaml. Raises `ConfigError`."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file; write it with `rlanything config write`")
    data = read_mapping(path)
    try:
        return parse(data)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _explain(item: dict[str, Any], whole: type[BaseModel]) -> str:
    loc = item["loc"]
    where = ".".join(str(part) for part in loc) or "configuration"
    if item["type"] == "extra_forbidden":
        return f"{where}: {unknown(str(loc[-1]), _known(loc[:-1], whole))}"
    if item["type"] == "missing":
        return f"{where}: missing"
    message = item["msg"].removeprefix("Value error, ")
    given = item["input"]
    if isinstance(given, (dict, BaseModel)):
        return f"{where}: {message}"
    if item["type"] == "float_type" and isinstance(given, str) and re.fullmatch(r"[+-]?\d+e[+-]?\d+", given):
        message += f"; in YAML it is written {given.replace('e', '.0e')}"
    return f"{where} = {shown(given)}: {message}"


def _known(loc: tuple[int | str, ...], whole: type[BaseModel]) -> list[str]:
    """Field names (as written in YAML) of the section at `loc` of `whole`."""
    section = whole
    for part in loc:
        found = section.model_fields.get(str(part))
        if found is None:  # a name inside `arms`
            continue
        inside = _sections(found.annotation)
        if not inside:  # a name inside a mapping of plain values
            return []
        section = inside[0]
    return [f.alias or name for name, f in section.model_fields.items()]


def _sections(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    arguments = getattr(annotation, "__args__", ())
    return [section for argument in arguments for section in _sections(argument)]
