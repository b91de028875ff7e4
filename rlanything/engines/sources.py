"""Where a checkpoint is, and what it is made of: the files of a folder, or a commit of a repository on the hub.

Nothing here uses the network. Of the hub only the cache on this machine is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from rlanything.config import Checkpoint
from rlanything.core.errors import ConfigError
from rlanything.files.hashes import file_hashes, files_in
from rlanything.files.reader import FileError, read_object

WEIGHTS = "model*.safetensors"
PICKLES = "pytorch_model*.bin"
_NEEDED = {
    "configuration": (("config.json",), "save the model with checkpoint.save or save_pretrained"),
    "weights": (
        (WEIGHTS, PICKLES),
        "save the model with checkpoint.save, or pull the large files of the repository",
    ),
    "tokenizer": (
        ("tokenizer.json", "*.model", "vocab.*", "tekken.json"),
        "save its tokenizer into the same folder",
    ),
}
"""What a folder must hold: name -> (file patterns, what to do when none of the patterns matches)."""
_TEMPLATES = ("*.jinja", "additional_chat_templates/*.jinja", "chat_template.json", "tekken.json")
"""Patterns of files that a chat template may be in, besides `_SETTINGS`."""
_SETTINGS = "tokenizer_config.json"
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


def lacking(folder: Path, allow_pickle: bool) -> str:
    """What a checkpoint's folder must hold and does not, by the names of its files, and what to do; or ''."""
    for what, (patterns, advice) in _NEEDED.items():
        if not _any(folder, patterns):
            return f"no {what} ({' or '.join(patterns)}); {advice}"
    if not allow_pickle and not _any(folder, (WEIGHTS,)):
        return (
            f"its weights are pickles ({PICKLES}), and reading one can run code; save it as safetensors, or set "
            "allow_pickle=true beside its path in the configuration if you trust it"
        )
    if not _any(folder, _TEMPLATES) and not _has_template(folder / _SETTINGS):
        return "the tokenizer has no chat template; add chat_template.jinja, or use an instruct model"
    return ""


def _any(folder: Path, patterns: Iterable[str]) -> bool:
    return any(True for pattern in patterns for _ in folder.glob(pattern))


def _has_template(settings: Path) -> bool:
    """Whether a template is in the tokenizer's settings. Of damaged ones the trial load says what is wrong."""
    try:
        return settings.exists() and bool(read_object(settings).get("chat_template"))
    except FileError:
        return True


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
