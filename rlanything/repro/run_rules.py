"""The rules of a run, and which of them a what-if replay may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rlanything.config import Config, parse
from rlanything.core.errors import ConfigError, unknown
from rlanything.repro.replay import Rules
from rlanything.runs import provenance
from rlanything.runs.layout import Layout

BAND = ("adaptation.alpha_low", "adaptation.alpha_high", "adaptation.acceptance")


def own(folder: Path) -> Rules:
    """The rules of the run in runs/<arm>/seed-<n>, from its provenance. Raises `ConfigError`."""
    folder = folder.resolve()
    arm, name = folder.parent.name, folder.name
    if folder.parents[1].name != "runs" or not name.startswith("seed-") or not name[5:].isdecimal():
        raise ConfigError(f"{folder}: not the folder of a run (runs/<arm>/seed-<n>)")
    root = folder.parents[2]
    return Rules(configuration(provenance.read(root, arm), root), arm, int(name[5:]))


def configuration(record: Mapping[str, Any], root: Path) -> Config:
    """The configuration in the record of an arm of the project at `root`.

    Raises `ConfigError` for one that this version cannot read, as those that the first versions recorded.
    """
    try:
        return parse(record["config"])
    except ConfigError as error:
        file = Layout(root).provenance(str(record["arm"]))
        raise ConfigError(
            f"{file}: this version of the program cannot read the configuration in the record. The record was changed, "
            f"or it is of an earlier version: read it with the code of its commit (`git log {file}`). {error}"
        ) from None


def recorded(arm: Path) -> list[Path]:
    """The folders of the seeds that the record of the arm in runs/<arm> has. Raises `ConfigError`."""
    place = arm.resolve()
    return [arm / f"seed-{seed}" for seed in provenance.read(place.parents[1], place.name)["seeds"]]


def unrecorded(folder: Path) -> str:
    """What keeps a folder from being a run of the arm's record: it is missing, or the record lacks it; '' for nothing.

    Raises `ConfigError`."""
    folder = folder.resolve()
    if folder not in recorded(folder.parent):
        return f"the record provenance/{folder.parent.name}.json has no {folder.name}"
    if not (folder / "metrics.jsonl").is_file():
        return f"the record provenance/{folder.parent.name}.json has it, and {folder} is no finished run"
    return ""


def changed(rules: Rules, overrides: Sequence[str]) -> Rules:
    """The rules with some values of signals.* or of the acceptance rule changed. overrides: `key=value`.

    Raises `ConfigError`."""
    data = rules.config.model_dump(mode="json", by_alias=True)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"{override!r}: expected key=value, e.g. signals.lambda=0.5")
        section, name = _place(data, key)
        try:
            section[name] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            reason = str(error).splitlines()[0]
            raise ConfigError(f"{override!r}: no value that YAML can read ({reason})") from None
    config = parse(data)
    before, after = rules.config.adaptation.acceptance, config.adaptation.acceptance
    if after == "paired" and before != after:
        raise ConfigError(
            "adaptation.acceptance=paired: the run rolled out no old task beside its rewrite: there is nothing to pair"
        )
    return Rules(config, rules.arm, rules.seed)


def differing(before: Config, after: Config) -> list[str]:
    """The changed keys with both values, as `key old -> new`."""
    old, new = (config.model_dump(mode="json", by_alias=True) for config in (before, after))
    return [
        f"{key} {_value(old, key)} -> {_value(new, key)}"
        for key in keys(old)
        if _value(old, key) != _value(new, key)
    ]


def keys(data: dict[str, Any]) -> list[str]:
    """The keys that can be changed in a replay, because they do not affect sampling."""
    return [f"signals.{name}" for name in data["signals"]] + list(BAND)


def _place(data: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    allowed = keys(data)
    if key not in allowed:
        raise ConfigError(
            f"{key}: cannot be changed after the rollouts were made, or {unknown(key, allowed)}"
        )
    section, name = key.split(".")
    return data[section], name


def _value(data: dict[str, Any], key: str) -> Any:
    section, name = key.split(".")
    return data[section][name]
