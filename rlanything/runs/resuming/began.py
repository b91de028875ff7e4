"""Whether the tasks and base models that runs began from are those that are here now."""

from __future__ import annotations

from pathlib import Path

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.printable import say
from rlanything.core.splits import TRAIN
from rlanything.files.hashes import file_hashes
from rlanything.runs import provenance
from rlanything.runs.layout import Layout
from rlanything.runs.resuming.origins import first_few

MAKING = ("seed", "env", "tasks", "model", "bootstrap")
"""The sections of the configuration on which tasks and base models depend."""


def measured_of(config: Config, arm: str) -> tuple[str, ...]:
    """The arms whose runs hold the policy and the reward model that `arm` is measured with, each once."""
    return tuple(dict.fromkeys((config.judge_of(arm) or arm, arm)))


def check_began(config: Config, root: Path, arm: str) -> None:
    """Raise `ConfigError` where the arm's runs began from other training tasks or base models than are there now.

    Compared are the hashes in the record of the runs. Nothing is compared where something of it is missing: the runs, a
    record in this version's form, the training tasks, or whole models/. Of a real checkpoint models/ has what
    `bootstrap` recorded of it, so none is read.

    A record of other runs refuses nothing, and that is said: git brings such records. The runs are read for that, but
    only where they would be refused.
    """
    layout = Layout(root)
    # Git has records without their runs.
    needed = (layout.run(arm, 0), layout.bootstrap, layout.tasks(TRAIN))
    if not all(path.exists() for path in needed) or not provenance.of_this_form(root, arm):
        return
    record = provenance.read(root, arm)
    places = {layout.tasks(TRAIN), *(root / "models" / role for role in _roles(config, arm))}
    then = {name: digest for name, digest in record["inputs"].items() if places & _upwards(root / name)}
    here = (path for path in (root / name for name in then) if path.is_file())
    found = provenance.changed(then, file_hashes(root, here))
    if not found:
        return
    if provenance.of_other_runs(record, root):
        say(
            f"{layout.provenance(arm)}: of other runs than those in {layout.run(arm, 0).parent}. What these began from "
            "is not known, so it is not compared with what is here"
        )
        return
    now = config.model_dump(by_alias=True, mode="json")
    before, after = (
        provenance.flat({key: data[key] for key in MAKING if key in data}) for data in (record["config"], now)
    )
    settings = provenance.changed(before, after)
    under = f" Settings that differ (theirs -> now): {first_few(settings)}." if settings else ""
    raise ConfigError(
        f"{layout.run(arm, 0).parent}: these runs began from other training tasks or base models than there are now "
        f"({first_few(found)}), so what is measured of them could not be compared with others.{under} Make the earlier "
        f"ones again to measure these runs, or train the arm again and then measure it: `rlanything train --arm {arm}`"
    )


def _roles(config: Config, arm: str) -> list[str]:
    """The folders of models/ that a run of the arm begins from. The others may change beside it."""
    own = config.arm(arm)
    # LoRA's weights lie beside the frozen ones.
    reads = own.reward_from is None or "reward" in config.learn.lora
    judged = reads and not config.judge_for(own).is_oracle
    return ["policy", *(["reward"] if judged else []), *(["adapter"] if own.adapt else [])]


def _upwards(path: Path) -> set[Path]:
    return {path, *path.parents}
