"""What a check is as a stage of checks/dvc.yaml: `make check` declares the stage with it.

python -m rlanything.checks.stages kind experiments/check/ladder.yaml    # ladder
python -m rlanything.checks.stages deps experiments/check/ladder.yaml    # --deps data/tasks --deps ...
python -m rlanything.checks.stages deps --registered experiments/check/table1.yaml    # of the registered configuration
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlanything.checks.adaptation.declare import Adaptation, load_adaptation
from rlanything.checks.corruption.declare import Corruption, load_corruption
from rlanything.checks.declaration import PLACE
from rlanything.checks.finished_runs import OfRuns
from rlanything.checks.ladder.declare import Ladder, load_ladder
from rlanything.checks.pooling.declare import Pooling, load_pooling
from rlanything.checks.pooling.experiments import folders
from rlanything.checks.selection.declare import Selection, load_selection
from rlanything.checks.study import registration
from rlanything.checks.study.declare import Study, load_study
from rlanything.checks.training import Training
from rlanything.config import Section
from rlanything.core.errors import ConfigError, RLAnythingError
from rlanything.core.printable import safe_lines
from rlanything.files.project import PARAMS
from rlanything.files.yaml_file import read_mapping
from rlanything.planning import check, compose
from rlanything.runs.imports import code_files, whole_folders
from rlanything.runs.layout import Layout
from rlanything.sweep.dependencies import of_command, options


@dataclass(frozen=True)
class Kind:
    """A kind of check: what its file declares, and the module that runs it."""

    declares: type[Section]
    load: Callable[[Path], Any]
    command: str


KINDS: Mapping[str, Kind] = {
    "ladder": Kind(Ladder, load_ladder, "rlanything.checks.ladder.command"),
    "study": Kind(Study, load_study, "rlanything.checks.study.command"),
    "pool": Kind(Pooling, load_pooling, "rlanything.checks.pooling.command"),
    "selection": Kind(Selection, load_selection, "rlanything.checks.selection.command"),
    "corruption": Kind(Corruption, load_corruption, "rlanything.checks.corruption.command"),
    "adaptation": Kind(Adaptation, load_adaptation, "rlanything.checks.adaptation.command"),
}


def kind(file: Path, pinned: bool = False) -> str:
    """Which check a file declares, by its keys.

    pinned: it must be one that is registered. Raises `ConfigError` where the keys are of no check, or of several.
    """
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in file.parent.glob("*.yaml"))) or "nothing"
        raise ConfigError(f"{file}: no such file; {file.parent} has {there}")
    keys = set(read_mapping(file))
    known = {name: len(keys & set(one.declares.model_fields)) for name, one in KINDS.items()}
    best = [name for name, count in known.items() if count == max(known.values())]
    if not any(known.values()):
        raise ConfigError(f"{file} declares no check: none of its keys is one of {', '.join(KINDS)}")
    if len(best) > 1:
        raise ConfigError(
            f"{file}: its keys can be those of {' or '.join(best)}; add one that only the check that is meant has"
        )
    if pinned and best[0] != "study":
        raise ConfigError(f"REGISTERED=1: {file} declares a check {best[0]!r}; only a study is registered")
    return best[0]


def dependencies(file: Path, root: Path, pinned: bool = False) -> list[str]:
    """The files and folders that decide what the check in `file` finds.

    pinned: it is a study that runs under the configuration that was registered. Raises `ConfigError`.
    """
    found = KINDS[kind(file, pinned)]
    declared = found.load(file)
    if isinstance(declared, Pooling):
        return _pooled(file, declared, found, root)
    if not isinstance(declared, OfRuns):
        assert isinstance(declared, Training)
        overrides = declared.hydra_overrides(workers=1)
        if pinned:
            assert isinstance(declared, Study)
            overrides += registration.pinned(declared, root, root / PLACE / file.stem)
        return of_command(found.command, compose.compose(overrides, root))
    config = check.read(root / PARAMS, root)
    declared.check(config)
    runs = [Layout(Path()).run(arm, 0).parent.as_posix() for arm in declared.measured(config)]
    return [PARAMS, *runs, *of_command(found.command, config.model_dump(by_alias=True))]


def _pooled(file: Path, declared: Pooling, found: Kind, root: Path) -> list[str]:
    """Published results and code: it runs nothing."""
    params = root / PARAMS
    read = [path / part for path in folders(declared, root, params) for part in (PARAMS, "evaluation")]
    # A declared folder may lie outside of the project.
    parts = [(path.relative_to(root) if path.is_relative_to(root) else path).as_posix() for path in read]
    return [PARAMS, str(file), *parts, *whole_folders(code_files([found.command]))]


def main(words: list[str]) -> None:
    """Print what was asked for; a bad file ends with its message."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kind", "deps"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--registered", action="store_true", help="a study, as it was registered")
    args = parser.parse_args(words)
    try:
        if args.what == "kind":
            print(kind(args.file, args.registered))
        else:
            print(options(dependencies(args.file, Path(), args.registered)))
    except RLAnythingError as error:
        sys.exit(safe_lines(f"rlanything: {error}"))


if __name__ == "__main__":
    main(sys.argv[1:])
