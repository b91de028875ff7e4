"""The pictures of a rollout, as text: which file, of which size. Nothing is decoded or drawn."""

from __future__ import annotations

from collections.abc import Sequence

from rlanything.core.types import Json
from rlanything.files.images import FOLDER, ImageStore
from rlanything.files.reader import FileError
from rlanything.rollouts.runs import NamedRun


def pictures(run: NamedRun, names: Sequence[str]) -> list[dict[str, Json]]:
    """What is known of each picture, in order. file: from the run's folder. problem: why it cannot be read, or ''."""
    store = ImageStore(run.stored.folder / FOLDER)
    return [_picture(store, name) for name in names]


def _picture(store: ImageStore, name: str) -> dict[str, Json]:
    found: dict[str, Json] = {
        "sha256": name,
        "file": store.path(name).relative_to(store.folder.parent).as_posix(),
        "problem": "",
    }
    try:
        image = store.get(name)
    except FileError as error:
        return {**found, "problem": str(error), "width": None, "height": None, "bytes": None}
    return {**found, "width": image.width, "height": image.height, "bytes": len(image.png)}


def line(picture: dict[str, Json]) -> str:
    """One line about a picture."""
    if picture["problem"]:
        return f"{picture['sha256'][:12]}  {picture['problem']}"
    size = f"{picture['width']} x {picture['height']}, {picture['bytes']:,} bytes"
    return f"{picture['sha256'][:12]}  {size}  {picture['file']}"
