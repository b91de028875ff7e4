"""`rlanything sweep FILE --rerun N --output DIR`: run a published trial again in another folder, and compare.

N is a trial, or `fresh/N`: that trial with fresh seeds. DIR becomes a small project with the trial's params.yaml. Its
tasks and base models are links to those that the trial used: the project's, or those that the sweep made. If they no
longer exist, they are made in DIR. Before the training they are compared with the trial's provenance: from other ones
it would learn something else. The project is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files import hashes
from rlanything.files.atomic import write_text
from rlanything.files.project import PARAMS
from rlanything.files.reader import read_object, read_text
from rlanything.files.records import write_json
from rlanything.planning import check
from rlanything.repro.difference import Difference, Folder, first_difference
from rlanything.runs.fingerprint import inputs as inputs_of
from rlanything.runs.layout import Layout
from rlanything.runs.machine import machine
from rlanything.runs.provenance import changed, read
from rlanything.stages.missing import Command, missing_runs, run_command
from rlanything.sweep.command import FOLDER
from rlanything.sweep.declare.check import compose_base
from rlanything.sweep.declare.file import load_sweep, sweep_name
from rlanything.sweep.declare.sweep import Sweep
from rlanything.sweep.results.publish import METRICS, RECORDS, published_folder
from rlanything.sweep.trials import key
from rlanything.sweep.trials.inputs import MADE, Inputs, link, missing_inputs, removed_on_error, sources
from rlanything.sweep.trials.key import SHOWN, Key

MARK = "rerun.json"
"""The file in DIR that names the trial that is run again there."""
FRESH = "fresh"
"""The folder of a published sweep with its runs on fresh seeds; those of trials are in `trials`."""
KINDS = {"data": "tasks", "models": "base models"}
"""What the inputs of a run in these folders are. All others are checkpoints elsewhere."""


@dataclass(frozen=True)
class Trial:
    """A published trial. name: `3`, or `fresh/3`. key: what all trials of the sweep depended on; None where it was not
    published."""

    sweep_name: str
    name: str
    folder: Path
    sweep: Sweep
    key: Key | None

    @classmethod
    def of(cls, file: Path, root: Path, name: str) -> Trial:
        """Read a published trial. Raises `ConfigError` when it does not exist or has no results."""
        found = re.fullmatch(rf"(?:({FRESH})/)?0*(\d{{1,9}})", name, re.ASCII)
        if found is None:
            raise ConfigError(
                f"--rerun {name}: give the number of a trial, e.g. 3, or {FRESH}/3: on fresh seeds"
            )
        kind, number = found[1], int(found[2])
        published = published_folder(root, sweep_name(file))
        if not (published / "sweep.yaml").is_file():
            raise ConfigError(
                f"{published}: no such sweep is published; run it first: rlanything sweep {file}"
            )
        sweep, folder = load_sweep(published / "sweep.yaml"), published / (kind or "trials") / f"{number:04d}"
        if not (folder / PARAMS).is_file():
            raise ConfigError(f"--rerun {name}: {published} has no such trial; known: {_known(published)}")
        if not all(Layout(folder).evaluation(arm).is_file() for arm in sweep.arms):
            raise ConfigError(
                f"--rerun {name}: the trial crashed or was pruned; there is nothing to compare with"
            )
        path, own = published / key.FILE, f"{kind}/{number}" if kind else str(number)
        return cls(sweep_name(file), own, folder, sweep, Key.read(path) if path.is_file() else None)

    @property
    def kept(self) -> tuple[str, ...]:
        """The files and folders of the trial that are compared."""
        runs = [p.relative_to(self.folder) for p in sorted(self.folder.glob("runs/*/seed-*"))]
        names = [(run / name).as_posix() for run in runs for name in (METRICS, *RECORDS)]
        return ("evaluation", *(name for name in names if (self.folder / name).exists()))

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """Arm -> the record of its run, with its starts; without arms whose record was not published."""
        arms = [arm for arm in self.sweep.arms if Layout(self.folder).provenance(arm).is_file()]
        return {arm: read(self.folder, arm) for arm in arms}


def _known(published: Path) -> str:
    """The published trials, for messages."""
    found = {
        prefix: sorted(int(p.name) for p in (published / folder).glob("[0-9]*") if p.name.isdecimal())
        for prefix, folder in (("", "trials"), (f"{FRESH}/", FRESH))
    }
    return ", ".join(f"{prefix}{number}" for prefix, numbers in found.items() for number in numbers) or "none"


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    inputs: what differs in the tasks and base models.
    trained: whether it went on from there.
    difference: the first one in the published files.
    machines: that of the trial and this one.
    """

    trial: str
    output: Path
    inputs: tuple[str, ...]
    trained: bool
    difference: Difference | None
    machines: str

    @property
    def same(self) -> bool:
        """Whether every published file has the same bytes."""
        return self.trained and self.difference is None

    @property
    def text(self) -> str:
        """For a terminal."""
        if self.same:
            return f"trial {self.trial}: every published file came out with the same bytes ({self.output})\n"
        if not self.trained:
            return (
                f"trial {self.trial}: NOT TRAINED: {other_inputs(self.inputs)}{self.machines}\n"
                "From these its training gives other results. --anyway trains nevertheless and compares.\n"
            )
        why = f"{other_inputs(self.inputs)}\n" if self.inputs else ""
        return (
            f"trial {self.trial}: DIFFERS from what {self.output} holds; the first difference (first: as published; "
            f"second: run again):\n{self.difference}\n{why}{self.machines.lstrip()}\n"
        )


def other_inputs(found: tuple[str, ...]) -> str:
    """A sentence that names what came out otherwise, and the first files."""
    kinds = dict.fromkeys(KINDS.get(text.partition("/")[0], "checkpoints") for text in found)
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"the {' and '.join(kinds)} came out otherwise here (published -> here): {'; '.join(found[:SHOWN])}{more}."


def rerun_trial(
    file: Path,
    root: Path,
    params: Path,
    name: str | None,
    output: Path | None,
    say: Callable[[str], None],
    *,
    anyway: bool = False,
) -> Outcome:
    """Train and evaluate trial `name` of the sweep in `file` again. After a kill, the same command resumes.

    Args:
        file: the sweep.
        root: the project.
        params: the project's configuration.
        name: a number, or `fresh/` and a number.
        output: the folder for it.
        say: prints a line.
        anyway: train also from other tasks or base models than the trial's.

    Raises:
        ConfigError: before any work, when the trial cannot be repeated, or `output` contains something else.
    """
    if name is None or output is None:
        raise ConfigError("--rerun N and --output DIR go together: which trial is run again, and where")
    trial = Trial.of(file, root, name)
    config = check.read(trial.folder / PARAMS, root)
    inputs = Inputs.of(root, params, root / FOLDER / "inputs", older=True)
    _check_inputs(trial, config, inputs, say)
    _prepare(trial, config, inputs, output)
    stages = Stages(trial, config, inputs, output)
    stages.run(missing_inputs(output))
    records = trial.records
    if len(records) < len(trial.sweep.arms):
        say(
            "the trial's provenance was not published: its tasks and base models are not compared with those here"
        )
    other = _other_inputs(records, config, output)
    difference, trains = None, anyway or not other
    if trains:
        stages.run(missing_runs(config, output, trial.sweep.arms))
        difference = first_difference(Folder(trial.folder, trial.kept), Folder(output, trial.kept))
    return Outcome(trial.name, output, other, trains, difference, _machines(records))


def _other_inputs(records: Mapping[str, Mapping[str, Any]], config: Config, output: Path) -> tuple[str, ...]:
    """What differs in the tasks and models that the trial's runs began with: one text for each file.

    Other prompts are named as changed code is (`_check_inputs`); they are the user's, and made by no stage.
    """
    found: dict[str, None] = {}
    left_out = ("runs/", f"{config.model.prompts}/")
    for arm, record in records.items():
        there, here = (
            {path: value for path, value in files.items() if not path.startswith(left_out)}
            for files in (record["inputs"], inputs_of(config, output, arm))
        )
        found |= dict.fromkeys(changed(there, here))
    return tuple(found)


def _machines(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The machine of the trial and this one, as a sentence; '' where the trial's is not known."""
    starts = next((record["starts"] for record in records.values() if record["starts"]), None)
    if starts is None:
        return ""
    return f" The trial was trained on {_described(starts[-1]['machine'])}; this is {_described(machine())}."


def _described(found: Mapping[str, Any]) -> str:
    capability = found.get("cpu_capability")
    processor = f"{found['cpu']} ({capability})" if capability else found["cpu"]
    settings = [f"{name}={value}" for name, value in found["settings"].items()]
    return ", ".join(
        [processor, *found["accelerators"], found["system"], f"Python {found['python']}", *settings]
    )


def _check_inputs(trial: Trial, config: Config, inputs: Inputs, say: Callable[[str], None]) -> None:
    """Raise `ConfigError` when the project's tasks or base models have changed since the sweep. Print other changes."""
    if trial.key is None:
        return
    now = Key.of(trial.sweep.arms, compose_base(trial.sweep, inputs.root), inputs)
    then = replace(now, inputs=trial.key.inputs)
    if inputs.place(config) == inputs.root and now.inputs and then.inputs and then != now:
        found = now.describe(then)
        raise ConfigError(
            f"--rerun {trial.name}: it would train something else: the project's tasks or base models are not those "
            f"of the sweep ({found})"
        )
    code = replace(now, files=trial.key.files, packages=trial.key.packages or now.packages)
    if since := now.describe(code):
        say(f"since the sweep: {since}")


def _prepare(trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
    """Prepare the folder in which the stages run. Raises `ConfigError` when it contains something else."""
    mark = {"sweep": trial.sweep_name, "trial": int(trial.name) if trial.name.isdecimal() else trial.name}
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


class Stages:
    """Runs stages of a trial in `output`, while the project stays as it was when the first began."""

    def __init__(self, trial: Trial, config: Config, inputs: Inputs, output: Path) -> None:
        self.config = config
        self.output = output
        data = config.model_dump(mode="json", by_alias=True)
        self.key = lambda: Key.of(trial.sweep.arms, data, inputs)
        self.began = self.key()

    def run(self, commands: Iterable[Command]) -> None:
        """Run them.

        Raises `ConfigError` where code, prompts, tasks or base models of the project changed since the first began.
        What the stage made that ran meanwhile is removed.
        """
        for command in commands:
            run_command(self.config, self.output, command)
            with removed_on_error(self.output, command):
                hashes.forget()
                if found := self.key().describe(self.began):
                    raise ConfigError(
                        f"changed while {' '.join(command)} ran (there: when the command began, here: now): {found}. "
                        f"What it made may be of the one or the other: removed from {self.output}. Undo the change, "
                        "and the same command goes on; with it, name another folder"
                    )
