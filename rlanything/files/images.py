"""The pictures of a run: one file for each content, named by its sha256, beside the records that name it.

    <folder>/4f/4f1c...9a.png

A file appears whole or not at all, and is written before any record that names it. So a killed run leaves at most
pictures that nobody names. A picture is read through its name: other bytes under it are an error, never a picture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rlanything.core.images import Image
from rlanything.core.images.png import MOST_BYTES, NAME
from rlanything.core.types import Json
from rlanything.files import atomic
from rlanything.files.reader import FileError, read_bytes, read_objects

FOLDER = "images"
"""The store of a run, in its folder. An iteration's record of this name lists the pictures that its rollouts name."""


class ImageStore:
    """The pictures in a folder, which the first picture makes. also: stores to read from what is not there."""

    def __init__(self, folder: Path, *also: Path) -> None:
        self.folder = folder
        self._also = [ImageStore(other) for other in also]
        self._added: set[str] = set()
        self._sizes: dict[str, tuple[int, int]] = {}

    def add(self, images: Iterable[Image]) -> None:
        """Keep pictures. One that is there is not written again. Raises `OSError` naming the file."""
        for image in images:
            self._sizes[image.sha256] = image.width, image.height
            path = self.path(image.sha256)
            if path.is_file() and path.stat().st_size == len(image.png):
                continue
            atomic.write_bytes(path, image.png)
            self._added.add(image.sha256)

    def discard_added(
        self, kept: Collection[str], barrier: Callable[[], object], passing: Collection[str] = ()
    ) -> None:
        """Remove the pictures that were added by this object since the last call, except `kept` and `passing`.

        passing: are kept until a later call has them in neither of both.
        barrier: waits until all processes that share the folder have called it. Before it, another one may still read
        a picture. After the removal it is called again: else another one would find a picture that is about to go,
        and not write it.
        """
        barrier()
        self._added.difference_update(kept)
        for name in self._added.difference(passing):
            self.path(name).unlink(missing_ok=True)
        self._added.intersection_update(passing)
        barrier()

    def get(self, name: str) -> Image:
        """The picture of a name. Raises `FileError` where it is missing, no PNG, or another picture."""
        path = self.path(name)
        if not path.exists():
            for other in self._also:
                if other.path(name).exists():
                    return other.get(name)
            raise FileError(f"{path}: no such file; a record names this picture")
        data = read_bytes(path, MOST_BYTES >> 20)
        if hashlib.sha256(data).hexdigest() != name:
            raise FileError(f"{path}: its content has another sha256 than its name")
        try:
            return Image(data)
        except ValueError as error:
            raise FileError(f"{path}: {error}") from None

    def size(self, name: str) -> tuple[int, int]:
        """(width, height) of a picture. Raises `FileError` like `get`."""
        if name not in self._sizes:
            image = self.get(name)
            self._sizes[name] = image.width, image.height
        return self._sizes[name]

    def listed(self, names: Iterable[str]) -> list[Json]:
        """What a record says of pictures that are here: name, bytes, width and height. Raises `FileError`."""
        found = map(self.get, sorted(names))
        return [
            {"sha256": i.sha256, "bytes": len(i.png), "width": i.width, "height": i.height} for i in found
        ]

    def damage(self, sizes: Mapping[str, int]) -> str | None:
        """A sentence about the first of these pictures that is gone or has another size; None when all are there.

        Their content is compared where it is read.
        """
        for name, size in sizes.items():
            path = self.path(name)
            if not path.is_file():
                return f"{path}: it is gone"
            if path.stat().st_size != size:
                return f"{path}: it has {path.stat().st_size:,} bytes, not the {size:,} that were written"
        return None

    def copy_to(self, folder: Path, names: Iterable[str]) -> None:
        """Copy pictures into the store of another folder. Raises `FileError` like `get`."""
        other = ImageStore(folder)
        for name in names:
            other.add([self.get(name)])

    def path(self, name: str) -> Path:
        """The file of a picture. Raises `ValueError` for what is no name of a picture: it could lead elsewhere."""
        if not NAME.fullmatch(name):
            raise ValueError(f"{name[:70]!r}: the name of a picture is its sha256, 64 hex digits")
        return self.folder / name[:2] / f"{name}.png"


def sizes(path: Path) -> dict[str, int]:
    """Name -> bytes of the pictures in a file of `ImageStore.listed`; {} where there is no such file.

    Raises `FileError` with the line.
    """
    found: dict[str, int] = {}
    for number, record in enumerate(read_objects(path) if path.exists() else (), 1):
        name, size = record.get("sha256"), record.get("bytes")
        if not (isinstance(name, str) and NAME.fullmatch(name) and isinstance(size, int)):
            raise FileError(f"{path}:{number}: no picture with its sha256 and its number of bytes")
        found[name] = size
    return found


@contextmanager
def passing() -> Iterator[ImageStore]:
    """A store that is removed after the block: for measurements, whose pictures nobody asks for afterwards."""
    with TemporaryDirectory(prefix="rlanything-images-") as folder:
        yield ImageStore(Path(folder))


def clear(folder: Path, kept: Collection[str]) -> None:
    """Remove every file of a store that is none of the pictures `kept`: what a killed process left."""
    if folder.is_dir():
        own = {ImageStore(folder).path(name) for name in kept}
        for path in folder.rglob("*"):
            if path.is_file() and path not in own:
                path.unlink()
