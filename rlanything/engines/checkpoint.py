"""Models and tokenizers on disk, in the ordinary Hugging Face form only.

A checkpoint is not trusted. Code in it is never run: `trust_remote_code` is false, and pickled weights are refused
unless `allow_pickle` is set.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from rlanything.core.errors import UserError
from rlanything.engines.sources import lacking
from rlanything.engines.untrusted_load import NO_CODE, auto_class, why_unusable


class CheckpointError(UserError):
    """A checkpoint cannot be used; the message names the folder, what is missing and what to do."""


def load(
    source: str | Path,
    revision: str | None = None,
    *,
    allow_pickle: bool = False,
    dtype: torch.dtype = torch.float32,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The language model (in evaluation mode) and the tokenizer of a folder, or of a name on the hub.

    A model that also reads pictures is loaded whole; how it reads them is in `engines.sight`.

    Args:
        source: a folder that exists, or a name such as `Qwen/Qwen2.5-0.5B-Instruct`.
        revision: branch, tag or commit of a hub repository; ignored for folders.
        allow_pickle: accept weights that are not safetensors. Reading pickled weights can run code.
        dtype: of the weights in memory.

    Raises:
        CheckpointError: when the configuration, weights, tokenizer or chat template is missing or unreadable,
            takes too much time or memory to load, or needs code of its own.
    """
    check(source, revision, allow_pickle=allow_pickle)
    try:
        tokenizer, model, missing = _read(str(source), revision, dtype, allow_pickle)
    except Exception as error:  # libraries that read a damaged file may raise anything
        raise _unusable(source, str(error) or type(error).__name__) from error
    if missing:
        names = ", ".join(sorted(missing)[:3])
        raise CheckpointError(f"{source}: the weights lack {names}; save the whole model again")
    return model, tokenizer


def check(source: str | Path, revision: str | None = None, *, allow_pickle: bool = False) -> None:
    """What `load` raises before it reads any weights."""
    folder = Path(source)
    if folder.exists() or folder.is_absolute():
        _check_folder(folder, allow_pickle)
    problem = why_unusable(str(source), revision)
    if problem:
        raise _unusable(source, problem)


def _read(
    source: str, revision: str | None, dtype: torch.dtype, allow_pickle: bool
) -> tuple[PreTrainedTokenizerBase, PreTrainedModel, Collection[str]]:
    """Tokenizer, model, and the names of the weights that the checkpoint lacks. Raises whatever the libraries raise."""
    with _no_progress_bars():
        tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, **NO_CODE)
        config = AutoConfig.from_pretrained(source, revision=revision, **NO_CODE)
        loaded: Any = auto_class(config).from_pretrained(
            source,
            revision=revision,
            dtype=dtype,
            output_loading_info=True,
            use_safetensors=None if allow_pickle else True,
            **NO_CODE,
        )
    model, report = loaded
    return tokenizer, model, report["missing_keys"]


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> None:
    """Write a folder that `load` and every Hugging Face program can read. Weights are stored as safetensors.

    Equal models give equal bytes, however they were loaded.
    """
    with _no_progress_bars():
        model.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))
    _forget_loading(Path(folder) / "tokenizer_config.json")


_HOW_LOADED = ("is_local", "local_files_only")
"""Keys in which transformers records how a tokenizer was loaded. The second depends on HF_HUB_OFFLINE."""


def _forget_loading(file: Path) -> None:
    config = json.loads(file.read_text())
    kept = {key: value for key, value in config.items() if key not in _HOW_LOADED}
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


def _unusable(source: str | Path, problem: str) -> CheckpointError:
    if "trust_remote_code" in problem:
        problem = "it needs code of its own (auto_map), which is never run; use an architecture that transformers has"
    return CheckpointError(f"{source}: cannot be loaded: {problem}")


def _check_folder(folder: Path, allow_pickle: bool) -> None:
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder}: no such folder; give a folder that holds a checkpoint, or a hub name"
        )
    if problem := lacking(folder, allow_pickle):
        raise CheckpointError(f"{folder}: {problem}")
    for path in folder.iterdir():
        if not (path.is_file() or path.is_dir()):
            raise CheckpointError(f"{path}: not a regular file")


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Without progress bars: small models load at once, and a bar for each checkpoint would fill the log."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
