"""An evaluation goes where what it was measured with is replaced by hand. DVC measures again by itself.

It goes before the new takes its place, or before the new counts as whole. So no kill leaves it beside what it was not
measured with. Runs stay, as they cost much more; the stage `evaluate` refuses them then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rlanything.config import CONTROLS
from rlanything.core.ids import content_id
from rlanything.core.printable import say
from rlanything.files import atomic
from rlanything.files.hashes import file_hashes, files_in
from rlanything.runs.layout import Layout
from rlanything.stages import EVALUATE, TRAIN, by_dvc, of_arm


def measured(layout: Layout, arms: Iterable[str] | None = None) -> list[str]:
    """Those of `arms` (None: all) that have an evaluation which a command by hand removes; none under DVC."""
    if by_dvc():
        return []
    there = sorted(path.stem for path in layout.evaluation("any").parent.glob("[!.]*.json"))
    return [name for name in (there if arms is None else arms) if name in there]


def forget(
    layout: Layout,
    names: Iterable[str],
    by: str,
    whose: str,
    *,
    before: Sequence[str] = (),
    retrain: bool = True,
) -> None:
    """Remove the evaluations of these arms, and say so.

    Args:
        layout: the project.
        names: what `measured` returned.
        by: what replaces something, as it begins lines: a stage, or the arm that is trained.
        whose: what they were measured with, in words.
        before: stages that must run again first.
        retrain: whether the runs of the arms are no longer of what is there, either.
    """
    for name in names:
        file = layout.evaluation(name)
        file.unlink()
        atomic.sync(file.parent)
        train = [of_arm(TRAIN, name)] if retrain and name not in CONTROLS else []
        commands = [f"`rlanything {command}`" for command in (*before, *train, of_arm(EVALUATE, name))]
        say(
            f"{by}: {file} is removed: it was measured with {whose}; {' and then '.join(commands)} "
            f"{'measures' if len(commands) == 1 else 'measure'} again"
        )


def used(layout: Layout) -> dict[str, str]:
    """Hashes of the tasks and base models that an evaluation is made with, where they are another folder's.

    {} in a folder with its own: what replaces these there removes the evaluations.
    """
    tasks, models = layout.manifest.parent, layout.bootstrap.parent
    if not any(place.is_symlink() for place in (tasks.parent, models)):
        return {}
    return {"tasks": _whole(tasks, files_in(tasks)), "base models": base_models(layout)}


def base_models(layout: Layout) -> str:
    """A hash of what evaluations read of models/; bootstrap.json is none of it, which says whether that is whole."""
    folder = layout.bootstrap.parent
    return _whole(folder, (path for path in files_in(folder) if path != layout.bootstrap))


def _whole(folder: Path, files: Iterable[Path]) -> str:
    return content_id(file_hashes(folder, files))
