"""A whole experiment as a side: a project, a workspace, a trial of a sweep, or what a git revision recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlanything.buffer.views.find.revision import nearest
from rlanything.compare.recorded import CURVES, SUMMARY, read_learning, read_summary
from rlanything.compare.side import Arm, Side, settings_of
from rlanything.config import BASE, BASE_COOLED, CONTROLS, Config, parse
from rlanything.core.errors import ConfigError, UserError
from rlanything.files.project import PARAMS
from rlanything.files.yaml_file import read_mapping
from rlanything.report.formatting import code
from rlanything.report.results.arms import ordered
from rlanything.report.results.curves import Curves, read_curves
from rlanything.report.results.evaluations import read_evaluation
from rlanything.report.results.statistics import Estimate, Panel
from rlanything.runs import provenance
from rlanything.runs.fingerprint import run_config
from rlanything.runs.layout import Layout

NO_TEST = (
    "no evaluation is there (`dvc fetch` may bring it), only the means and intervals of the report, so no difference "
    "from it can be tested"
)
MOST_KEYS = 5
"""Keys that a note names."""
_ABSENT = object()


def of_project(letter: str, name: str, kind: str, folder: Path, revision: str = "", only: str = "") -> Side:
    """The side of the experiment in a folder. only: the arm that is compared, not all of them.

    Raises `ConfigError` where it has no results that can be read.
    """
    raw = read_mapping(folder / PARAMS) if (folder / PARAMS).is_file() else {}
    config, notes = _config(raw)
    summary = read_summary(folder / SUMMARY) if (folder / SUMMARY).is_file() else {}
    every = ordered({BASE, BASE_COOLED, *_arms(raw), *summary})
    names = _chosen(name, only, every) if only else every
    panels = {arm: measured for arm in names if (measured := _panels(folder, arm))}
    curves = _curves(folder, names)
    found = [arm for arm in names if arm in panels or arm in summary or arm in curves]
    if not found:
        raise ConfigError(
            f"{name}: no results there: neither {SUMMARY} nor evaluation/ (`make repro`, or `dvc pull`, makes them)"
        )
    if not panels and summary:
        notes.append(NO_TEST)
    arms = {arm: _arm(folder, arm, panels.get(arm, {}), summary.get(arm, {}), curves) for arm in found}
    if config is not None:
        notes.extend(_written_since(config, arms))
    settings = settings_of(raw if config is None else config)
    place = None if revision else folder
    return Side(letter, name, kind, arms, *settings, config, tuple(notes), revision, place)


def _chosen(name: str, arm: str, known: list[str]) -> list[str]:
    """The arm alone. Raises `ConfigError` with the nearest one."""
    trained = [other for other in known if other not in CONTROLS]
    if arm not in trained:
        raise ConfigError(f"{name}: no arm {arm!r} there; {nearest(arm, trained)}")
    return [arm]


def _config(raw: Mapping[str, Any]) -> tuple[Config | None, list[str]]:
    if not raw:
        return None, [f"it has no {PARAMS}, so its settings are not known"]
    try:
        return parse(dict(raw)), []
    except ConfigError as error:
        first = str(error).splitlines()[-1].strip()[:200]
        return None, [
            f"its {PARAMS} is of another version ({code(first)}), so keys that it leaves out show no value"
        ]


def _written_since(config: Config, arms: Mapping[str, Arm]) -> Iterator[str]:
    """A note on the arms whose results were made with other settings than params.yaml has by now."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, arm in arms.items():
        if keys := _other_keys(config, arm):
            found[keys].append(name)
    for keys, names in found.items():
        named = ", ".join(map(code, keys[:MOST_KEYS]))
        more = f" and {len(keys) - MOST_KEYS} more" if len(keys) > MOST_KEYS else ""
        trained = f"{', '.join(map(code, names))} {'was' if len(names) == 1 else 'were'} trained with"
        yield f"{PARAMS} is not what {trained} ({named}{more}); the settings shown are those of {PARAMS}"


def _other_keys(config: Config, arm: Arm) -> tuple[str, ...]:
    """The keys that the arm's results depend on and that its record has otherwise; none where that is not known."""
    if arm.record is None or arm.name not in config.arms:
        return ()
    try:
        before = provenance.flat(run_config(parse(arm.record["config"]), arm.name))
    except ConfigError:  # of another version, or a configuration without the arm
        return ()
    now = provenance.flat(run_config(config, arm.name))
    return tuple(key for key in {**now, **before} if now.get(key, _ABSENT) != before.get(key, _ABSENT))


def _arms(raw: Mapping[str, Any]) -> Iterator[str]:
    arms = raw.get("arms")
    return (str(arm) for arm in arms if plain(str(arm))) if isinstance(arms, Mapping) else iter(())


def plain(arm: str) -> bool:
    """Whether an arm's name, which may be anybody's, is the name of a file in one folder."""
    return 0 < len(arm) <= 100 and not set(arm) & set("/\\\0") and arm not in (".", "..")


def _panels(folder: Path, arm: str) -> Mapping[str, Panel]:
    path = Layout(folder).evaluation(arm)
    return read_evaluation(path, arm) if plain(arm) and path.is_file() else {}


def _curves(folder: Path, arms: list[str]) -> Curves:
    found = read_curves(folder, [arm for arm in arms if plain(arm)])
    if not found and (folder / CURVES).is_file():
        return read_learning(folder / CURVES)
    return found


def _arm(
    folder: Path, arm: str, panels: Mapping[str, Panel], recorded: Mapping[str, Estimate], curves: Curves
) -> Arm:
    seeds = curves.get(arm, {})
    folders = {seed: Layout(folder).run(arm, seed) for seed in seeds if plain(arm)}
    folders = {seed: path for seed, path in folders.items() if path.is_dir()}
    return Arm(arm, panels, recorded, seeds, folders=folders, record=_record(folder, arm))


def _record(folder: Path, arm: str) -> Mapping[str, Any] | None:
    """What the arm was made from; None where that is not recorded, or cannot be read."""
    if not plain(arm) or not Layout(folder).provenance(arm).is_file():
        return None
    try:
        return provenance.read(folder, arm)
    except UserError:
        return None
