"""`rlanything redivide`: an unfinished run goes on with other devices, another strategy, or other batches.

The live folder gets the name that the run has with the division of the configuration, and a note of the change. Then
`train` finds it there and goes on. Nothing else of the run may differ.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.files import atomic, locks
from rlanything.runs.fingerprint import Origin, made_from
from rlanything.runs.folder import RunFolder
from rlanything.runs.layout import Layout
from rlanything.runs.resuming import divisions, origins
from rlanything.runs.resuming.divisions import Division
from rlanything.stages import TRAIN, of_arm


def redivide(config: Config, root: Path, arm: str, say: Callable[[str], None]) -> list[str]:
    """Let the unfinished run of `arm` go on with the division of `config`. Returns a sentence for each changed key.

    Raises:
        ConfigError: when no run of the arm is unfinished, when it differs in anything but its division, when several
            could be meant, while it is trained, and when every seed has all of its iterations.
        MachineError: when an older iteration is damaged.
    """
    command = of_arm(TRAIN, arm)
    with locks.stage(root, command), ExitStack() as held:
        origin = made_from(config, root, arm)
        live = Layout(root).live(origin.key, arm, 0).parent
        if any(live.glob("seed-*/iterations/[0-9]*")):
            raise ConfigError(
                f"{live}: an unfinished run of arm {arm} has this division already; `rlanything {command}` goes on "
                "with it. Remove the folder to go on with another one"
            )
        before, began = _meant(live, arm, origin)
        folders = {seed: RunFolder(before / f"seed-{seed}") for seed in range(config.train.seeds)}
        for folder in folders.values():
            if folder.path.is_dir():
                held.enter_context(folder.lock())
        done = {seed: len(folder.usable(say)) for seed, folder in folders.items()}
        first = {seed: count for seed, count in done.items() if count <= config.train.iterations}
        if not first:  # the last iteration only measures, and has this number
            raise ConfigError(
                f"{before}: every seed of arm {arm} has all of its iterations, so no division of now could hold for "
                f"any. Undo the change, and `rlanything {command}` stores them"
            )
        old = Origin(**began)
        known = divisions.read(before, old.key) or [Division.of(old, dict.fromkeys(folders, 0))]
        now = Division.of(origin, first)
        divisions.note(before, [*known, now])
        _move(before, live)
        origins.begin(live, arm, origin)  # its origin is the one of now
    return origins.changes(began, origin)


def _meant(live: Path, arm: str, origin: Origin) -> tuple[Path, dict[str, Any]]:
    """The live folder that differs from `origin` in its division alone, and the origin in it. Raises `ConfigError`."""
    left = origins.unfinished(live, arm)
    found = [folder for folder, began in left.items() if origins.divided(began, origin)]
    if len(found) == 1:
        return found[0], left[found[0]]
    if found:
        raise ConfigError(
            f"several unfinished runs of arm {arm} could go on: {', '.join(map(str, found))}. Remove those that are "
            "not wanted"
        )
    if not left:
        raise ConfigError(f"{live.parents[1]}: holds no unfinished run of arm {arm}, so nothing can go on")
    others = "; ".join(f"{folder} ({origins.differences(began, origin)})" for folder, began in left.items())
    raise ConfigError(
        f"no unfinished run of arm {arm} differs in its division alone ({', '.join(divisions.KEYS)}); there is "
        f"{others}. Undo what else differs"
    )


def _move(before: Path, live: Path) -> None:
    """Give the live folder of an arm its new name, which only a start that published nothing may have had."""
    if live.is_dir():
        atomic.remove(live)
    atomic.move(before, live)
    if not any(before.parent.iterdir()):
        atomic.remove(before.parent)
