"""`rlanything sweep FILE --rerun N --output DIR`: a published trial again, in a folder of its own, and compared.

DIR is a small project with the trial's own params.yaml. Its tasks and base models are those that the trial had: the
project's, or those that the sweep made for it, by link; where they are gone they are made in DIR. The project's results
are not touched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rlanything.config import Config, ConfigError
from rlanything.repro.difference import Difference, Folder, first_difference
from rlanything.stages import bootstrap, check, compose, evaluate, sweepkey, tasks, train
from rlanything.stages.layout import Layout, write_json, write_text
from rlanything.stages.sweep import FOLDER
from rlanything.stages.sweepkey import Key
from rlanything.stages.sweepresult import RESULTS
from rlanything.stages.sweeptrial import Inputs, TrialFolder, link, overrides
from rlanything.sweep.declare import Sweep, load, name_of

MARK = "rerun.json"
"""In the folder: which trial is run again there."""
PARAMS = "params.yaml"
FILES = ("metrics.jsonl", "buffer")
"""What a published trial keeps of a run."""


@dataclass(frozen=True)
class Trial:
    """A published trial. `key`: what the sweep's trials had in common; None where that was not published."""

    name: str
    number: int
    folder: Path
    sweep: Sweep
    key: dict[str, Any] | None

    @classmethod
    def of(cls, file: Path, root: Path, number: int) -> Trial:
        """Raises `ConfigError` for a trial that is not there, or has no result to be compared with."""
        name = name_of(file)
        published = root / RESULTS / name
        if not (published / "sweep.yaml").is_file():
            raise ConfigError(
                f"{published}: no such sweep is published; run it first: rlanything sweep {file}"
            )
        sweep, folder = load(published / "sweep.yaml"), published / "trials" / f"{number:04d}"
        if not (folder / PARAMS).is_file():
            known = ", ".join(str(int(p.name)) for p in sorted(folder.parent.iterdir()))
            raise ConfigError(f"--rerun {number}: {published} has no such trial; known: {known}")
        if not all(Layout(folder).evaluation(arm).is_file() for arm in sweep.arms):
            raise ConfigError(
                f"--rerun {number}: the trial crashed or was pruned; there is nothing to compare with"
            )
        path = published / sweepkey.FILE
        return cls(name, number, folder, sweep, json.loads(path.read_text()) if path.is_file() else None)

    @property
    def kept(self) -> tuple[str, ...]:
        """What of its folder another run of it must have as well."""
        runs = [p.relative_to(self.folder) for p in sorted(self.folder.glob("runs/*/seed-*"))]
        return ("evaluation", *(f"{run.as_posix()}/{name}" for run in runs for name in FILES))


def rerun(
    file: Path, root: Path, params: Path, number: int | None, output: Path | None, say: Callable[[str], None]
) -> Difference | None:
    """Train and evaluate trial `number` of the sweep in `file` again; killed, the same command goes on.

    Returns:
        Its first difference from the published trial; None when every published file came out with the same bytes.

    Raises:
        ConfigError: before any work, when it could not be the same trial or `output` holds something else.
    """
    if number is None or output is None:
        raise ConfigError("--rerun N and --output DIR go together: which trial is run again, and where")
    trial = Trial.of(file, root, number)
    config = check.read(trial.folder / PARAMS, root)
    inputs = Inputs.of(root, params, root / FOLDER / "inputs")
    _check_same(trial, config, inputs, say)
    _prepare(trial, config, inputs, output)
    _run(trial, config, inputs, output)
    return first_difference(Folder(trial.folder, trial.kept), Folder(output, trial.kept))


def _check_same(trial: Trial, config: Config, inputs: Inputs, say: Callable[[str], None]) -> None:
    """Raise `ConfigError` where the project's tasks and models are others by now; say what else is."""
    if trial.key is None:
        return
    base = compose.compose(overrides(trial.sweep, {}, trial.sweep.seeds), inputs.root)
    now = Key.of(trial.sweep, base, inputs)
    then = replace(now, inputs=trial.key["inputs"])
    if inputs.place(config) == inputs.root and now.inputs and then.inputs and then != now:
        found = now.words(asdict(then))
        raise ConfigError(
            f"--rerun {trial.number}: it would train something else: the project's tasks or base models are not those "
            f"of the sweep ({found})"
        )
    files = replace(now, files=trial.key["files"])
    if changed := now.words(asdict(files)):
        say(f"since the sweep: {changed}")


def _prepare(trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
    """The folder, up to what its commands need. Raises `ConfigError` for one that holds something else."""
    mark = {"sweep": trial.name, "trial": trial.number}
    known = json.loads((output / MARK).read_text()) if (output / MARK).is_file() else None
    if known != mark and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(
            f"--output {output}: holds something else; name a folder that is empty or not there"
        )
    write_json(output / MARK, mark)
    write_text(output / PARAMS, (trial.folder / PARAMS).read_text())
    link(output, inputs.root, ("experiments", "envs"))
    place = inputs.place(config)
    made_here = (output / "data").is_dir() and not (output / "data").is_symlink()
    if not made_here and not inputs.missing(place):
        link(output, place, ("data", "models"))


def _run(trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
    """Everything that is not there yet."""
    for (stage,) in inputs.missing(output):
        {"tasks": tasks, "bootstrap": bootstrap}[stage].run(config, output)
    for stage, _, arm in TrialFolder(output, trial.sweep, config.train.seeds).commands():
        {"train": train, "evaluate": evaluate}[stage].run(config, output, arm)


def text(trial: int, output: Path, difference: Difference | None) -> str:
    """The outcome for a terminal."""
    if difference is None:
        return f"trial {trial}: every published file came out with the same bytes ({output})\n"
    return (
        f"trial {trial}: DIFFERS from what {output} holds; the first difference (first: as published; second: run "
        f"again):\n{difference}\n"
    )
