"""Where a checkpoint is, and what it is made of: the files of a folder, or a commit of a repository on the hub.

Nothing here uses the network. Of the hub only the cache on this machine is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.files.hashes import file_hashes, files_in

COMMIT = "commit"
"""The name under which `contents` has the commit of a repository."""


def source(checkpoint: Checkpoint, root: Path) -> str:
    """The folder of a checkpoint, or its name on the hub.

    It is a folder if that folder exists, or if the path begins like one (`.`, `/`, `models/`, `runs/`)."""
    folder = root / checkpoint.path
    return str(folder) if is_local(checkpoint, root) else checkpoint.path


def is_local(checkpoint: Checkpoint, root: Path) -> bool:
    """Whether a checkpoint is a folder, which may be missing. If not, it is a name on the hub."""
    path = checkpoint.path
    return (root / path).exists() or path.startswith((".", "/", "models/", "runs/"))


def contents(checkpoint: Checkpoint, root: Path) -> dict[str, str]:
    """What the weights and the tokenizer are read from.

    Returns:
        Of a folder: path of each file that counts (`files.hashes`), from the folder -> sha256. Of a name on the hub:
        `COMMIT` -> the commit that its revision stands for in the cache; without a revision, the default branch's.
        {} for a folder that is missing, and for a name that is not in the cache yet.

    Raises:
        ConfigError: when the path can neither be a folder nor a name on the hub.
    """
    if is_local(checkpoint, root):
        folder = root / checkpoint.path
        return file_hashes(folder, files_in(folder))
    found = cached(checkpoint.path, "config.json", checkpoint.revision)
    return {} if found is None else {COMMIT: found.parent.name}


def named(checkpoint: Checkpoint, root: Path) -> dict[str, str]:
    """`contents` by names that also say which checkpoint they are of.

    Of a folder: `<path>/<file>`, with the path as the configuration has it, so files of the project are named from its
    root. Of a name on the hub: `<name>@<revision>`; without a revision, the name alone.
    """
    found = contents(checkpoint, root)
    if is_local(checkpoint, root):
        return {(PurePath(checkpoint.path) / name).as_posix(): digest for name, digest in found.items()}
    name = checkpoint.path + (f"@{checkpoint.revision}" if checkpoint.revision else "")
    return {name: found[COMMIT]} if found else {}


@contextmanager
def unchanged(root: Path, *checkpoints: Checkpoint | None) -> Iterator[None]:
    """Raise `ConfigError`, naming the checkpoint, when one of them changes during the block.

    Files are hashed before the block; after it, those whose inode, size or times have changed. A name on the hub that
    is not in the cache before the block is not compared.
    """
    chosen = [checkpoint for checkpoint in checkpoints if checkpoint is not None]
    before = [contents(checkpoint, root) for checkpoint in chosen]
    yield
    for checkpoint, found in zip(chosen, before, strict=True):
        if found and contents(checkpoint, root) != found:
            raise ConfigError(f"{checkpoint.path}: it changed while it was in use; start the command again")


def cached(name: str, file: str, revision: str | None) -> Path | None:
    """The path of a repository's file in the hub's cache; None if it is not there.

    Raises `ConfigError` for what cannot be a name on the hub.
    """
    from huggingface_hub import try_to_load_from_cache  # transformers reads its cache by the same function

    try:
        found = try_to_load_from_cache(name, file, revision=revision)
    except ValueError as error:
        raise ConfigError(f"{name}: no name on the hub ({' '.join(str(error).split())[:200]})") from None
    return Path(found) if isinstance(found, str) else None
