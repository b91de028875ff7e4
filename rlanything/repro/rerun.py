"""`rlanything sweep FILE --rerun N --output DIR`: run a published trial again in another folder, and compare.

DIR becomes a small project with the trial's params.yaml. Its tasks and base models are links to those that the trial
used: the project's, or those that the sweep made. If they no longer exist, they are made in DIR. The project is not
changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files import hashes
from rlanything.files.atomic import write_text
from rlanything.files.project import PARAMS
from rlanything.files.reader import read_object, read_text
from rlanything.files.records import write_json
from rlanything.planning import check
from rlanything.repro.difference import Difference, Folder, first_difference
from rlanything.runs.layout import Layout
from rlanything.stages.missing import missing_runs, run_command
from rlanything.sweep.command import FOLDER
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.declare.file import load_sweep, sweep_name
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.results.publish import published_folder
from rlanything.sweep.trials import key
from rlanything.sweep.trials.inputs import MADE, Inputs, link, missing_inputs, removed_on_error, sources
from rlanything.sweep.trials.key import Key

MARK = "rerun.json"
"""The file in DIR that names the trial that is run again there."""
FILES = ("metrics.jsonl", "buffer")
"""The published files and folders of a run."""


@dataclass(frozen=True)
class Trial:
    """A published trial. key: what all trials of the sweep depended on; None where it was not published."""

    name: str
    number: int
    folder: Path
    sweep: Sweep
    key: Key | None

    @classmethod
    def of(cls, file: Path, root: Path, number: int) -> Trial:
        """Read a published trial. Raises `ConfigError` when it does not exist or has no results."""
        name = sweep_name(file)
        published = published_folder(root, name)
        if not (published / "sweep.yaml").is_file():
            raise ConfigError(
                f"{published}: no such sweep is published; run it first: rlanything sweep {file}"
            )
        sweep, folder = load_sweep(published / "sweep.yaml"), published / "trials" / f"{number:04d}"
        if not (folder / PARAMS).is_file():
            names = sorted(int(p.name) for p in folder.parent.glob("[0-9]*") if p.name.isdecimal())
            known = ", ".join(map(str, names)) or "none"
            raise ConfigError(f"--rerun {number}: {published} has no such trial; known: {known}")
        if not all(Layout(folder).evaluation(arm).is_file() for arm in sweep.arms):
            raise ConfigError(
                f"--rerun {number}: the trial crashed or was pruned; there is nothing to compare with"
            )
        path = published / key.FILE
        return cls(name, number, folder, sweep, Key.read(path) if path.is_file() else None)

    @property
    def kept(self) -> tuple[str, ...]:
        """The files and folders of the trial that are compared."""
        runs = [p.relative_to(self.folder) for p in sorted(self.folder.glob("runs/*/seed-*"))]
        return ("evaluation", *(f"{run.as_posix()}/{name}" for run in runs for name in FILES))


def rerun_trial(
    file: Path, root: Path, params: Path, number: int | None, output: Path | None, say: Callable[[str], None]
) -> Difference | None:
    """Train and evaluate trial `number` of the sweep in `file` again. After a kill, the same command resumes.

    Returns:
        The first difference from the published trial; None when every published file has the same bytes.

    Raises:
        ConfigError: before any work, when the trial cannot be repeated, or `output` contains something else.
    """
    if number is None or output is None:
        raise ConfigError("--rerun N and --output DIR go together: which trial is run again, and where")
    trial = Trial.of(file, root, number)
    config = check.read(trial.folder / PARAMS, root)
    inputs = Inputs.of(root, params, root / FOLDER / "inputs", older=True)
    _check_inputs(trial, config, inputs, say)
    _prepare(trial, config, inputs, output)
    _run_stages(trial, config, inputs, output)
    return first_difference(Folder(trial.folder, trial.kept), Folder(output, trial.kept))


def _check_inputs(trial: Trial, config: Config, inputs: Inputs, say: Callable[[str], None]) -> None:
    """Raise `ConfigError` when the project's tasks or base models have changed since the sweep. Print other changes."""
    if trial.key is None:
        return
    now = Key.of(trial.sweep.arms, compose_base(trial.sweep, inputs.root), inputs)
    then = replace(now, inputs=trial.key.inputs)
    if inputs.place(config) == inputs.root and now.inputs and then.inputs and then != now:
        found = now.describe(then)
        raise ConfigError(
            f"--rerun {trial.number}: it would train something else: the project's tasks or base models are not those "
            f"of the sweep ({found})"
        )
    files = replace(now, files=trial.key.files)
    if changed := now.describe(files):
        say(f"since the sweep: {changed}")


def _prepare(trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
    """Prepare the folder in which the stages run. Raises `ConfigError` when it contains something else."""
    mark = {"sweep": trial.name, "trial": trial.number}
    known = read_object(output / MARK) if (output / MARK).is_file() else None
    if known != mark and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(
            f"--output {output}: holds something else; name a folder that is empty or not there"
        )
    write_json(output / MARK, mark)
    write_text(output / PARAMS, read_text(trial.folder / PARAMS))
    link(output, inputs.root, sources(config, inputs.root))
    place = inputs.place(config)
    made_here = (output / "data").is_dir() and not (output / "data").is_symlink()
    if not made_here and not missing_inputs(place):
        link(output, place, MADE)


def _run_stages(trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
    """Run every stage whose results are missing.

    Raises `ConfigError` where code, prompts, tasks or base models of the project changed since the first began. What
    the stage made that ran meanwhile is removed.
    """
    data = config.model_dump(mode="json", by_alias=True)
    began = Key.of(trial.sweep.arms, data, inputs)
    for command in (*missing_inputs(output), *missing_runs(config, output, trial.sweep.arms)):
        run_command(config, output, command)
        with removed_on_error(output, command):
            hashes.forget()
            if found := Key.of(trial.sweep.arms, data, inputs).describe(began):
                raise ConfigError(
                    f"changed while {' '.join(command)} ran (there: when the command began, here: now): {found}. What "
                    f"it made may be of the one or the other: removed from {output}. Undo the change, and the same "
                    "command goes on; with it, name another folder"
                )


def outcome_text(trial: int, output: Path, difference: Difference | None) -> str:
    """The outcome for a terminal."""
    if difference is None:
        return f"trial {trial}: every published file came out with the same bytes ({output})\n"
    return (
        f"trial {trial}: DIFFERS from what {output} holds; the first difference (first: as published; second: run "
        f"again):\n{difference}\n"
    )
