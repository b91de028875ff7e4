"""Reading a sweep file; every problem is named by its key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from rlanything.core.errors import ConfigError, unknown
from rlanything.files.project import DECLARED
from rlanything.files.reader import read_text
from rlanything.files.yaml_file import MOST_MB, mapping
from rlanything.sweep.declare.parameters import Band, Choices, Range
from rlanything.sweep.declare.sweep import Budget, Pruner, Sweep

EXAMPLES = Path("experiments") / "sweep"
SECTIONS: dict[str, type[BaseModel]] = {
    "choices": Choices, "range": Range, "band": Band, "budget": Budget, "pruner": Pruner,
}  # fmt: skip
TYPES = ("bool", "int", "float", "str")
"""Pydantic ends the location of a value that may have several types with one of these names."""


def sweep_name(path: Path) -> str:
    """The sweep's name: that of its file. Raises `ConfigError` for one that cannot name a folder."""
    if not DECLARED.fullmatch(path.stem):
        raise ConfigError(
            f"{path}: a sweep is named by its file; use lower-case letters, digits, '-' and '_', e.g. thresholds.yaml"
        )
    return path.stem


def load_sweep(path: Path) -> Sweep:
    """The sweep that a file declares. Raises `ConfigError` listing every problem."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if not path.is_file():
        declared = ", ".join(sorted(each.name for each in EXAMPLES.glob("*.yaml")))
        has = f"{EXAMPLES}/ has {declared}" if declared else f"examples are in {EXAMPLES}/"
        raise ConfigError(f"{path}: no such file; {has}")
    text = read_text(path, MOST_MB)
    mapping(path, text)  # refuses what Hydra's reader, which copies aliases, would take without end
    try:  # Hydra's reader, as for all of experiments/: it reads 1e-3 as a number
        data = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
    except (YAMLError, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        problems = dict.fromkeys(_explain(dict(item)) for item in error.errors())
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise ConfigError(f"{path} is not a valid sweep:\n{listed}") from None


def _explain(item: dict[str, Any]) -> str:
    """One of pydantic's errors as a line: the key as the file writes it, the value, what is wrong."""
    loc = [str(part) for part in item["loc"]]
    form = loc.pop(2) if loc[:1] == ["space"] and len(loc) > 2 else ""
    if form == "choices" and loc[2:3] == ["choices"]:  # the short form leaves this key out
        del loc[2]
    message = item["msg"].removeprefix("Value error, ")
    if form and loc[-1] in TYPES:
        loc.pop()
        if item["type"] != "finite_number":
            message = f"expected a number{', a word, true or false' if form == 'choices' else ''}"
    where = ".".join(loc)
    if item["type"] == "extra_forbidden":
        section = SECTIONS.get(str(item["loc"][-2]), Sweep) if len(item["loc"]) > 1 else Sweep
        return f"{where}: {unknown(loc[-1], section.model_fields)}"
    if item["type"] == "missing":
        return f"{where}: missing"
    if not where:
        return message
    given = item["input"]
    shown = where if isinstance(given, (dict, list, BaseModel)) else f"{where} = {given!r}"
    return f"{shown}: {message}"
