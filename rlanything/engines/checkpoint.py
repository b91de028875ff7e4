"""Models and tokenizers on disk, in the ordinary Hugging Face form and no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from rlanything.core.errors import UserError


class CheckpointError(UserError):
    """A checkpoint cannot be used; the message names the folder, what is missing and what to do."""


def load(
    source: str | Path, revision: str | None = None, *, dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The causal language model (in evaluation mode) and the tokenizer of a folder, or of a name on the hub.

    Args:
        source: a folder that exists, or a name such as `Qwen/Qwen2.5-0.5B-Instruct`.
        revision: branch, tag or commit of a hub repository; ignored for folders.
        dtype: of the weights in memory.

    Raises:
        CheckpointError: when the configuration, weights, tokenizer or chat template is missing or unreadable.
    """
    folder = Path(source)
    if folder.exists() or folder.is_absolute():
        _check_folder(folder)
    try:
        with _no_progress_bars():
            tokenizer = AutoTokenizer.from_pretrained(str(source), revision=revision)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(source), revision=revision, dtype=dtype, output_loading_info=True
            )
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(f"{source}: cannot be loaded: {error}") from error
    model, report = loaded
    if not tokenizer.chat_template:
        raise CheckpointError(
            f"{source}: the tokenizer has no chat template; add chat_template.jinja, or use an instruct model"
        )
    if report["missing_keys"]:
        names = ", ".join(sorted(report["missing_keys"])[:3])
        raise CheckpointError(f"{source}: the weights lack {names}; save the whole model again")
    return model, tokenizer


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> None:
    """Write a folder that `load` and every Hugging Face program can read; weights as safetensors.

    Equal models give equal bytes, however they were loaded.
    """
    with _no_progress_bars():
        model.save_pretrained(str(folder))
        tokenizer.save_pretrained(str(folder))
    _forget_loading(Path(folder) / "tokenizer_config.json")


_HOW_LOADED = ("is_local", "local_files_only")
"""What transformers notes of the call that loaded a tokenizer: the second follows from HF_HUB_OFFLINE."""


def _forget_loading(file: Path) -> None:
    config = json.loads(file.read_text())
    kept = {key: value for key, value in config.items() if key not in _HOW_LOADED}
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False, sort_keys=True) + "\n")


_NEEDED = {
    "configuration": (("config.json",), "save the model with checkpoint.save or save_pretrained"),
    "weights": (
        ("model*.safetensors", "pytorch_model*.bin"),
        "save the model with checkpoint.save, or pull the large files of the repository",
    ),
    "tokenizer": (
        ("tokenizer.json", "*.model", "vocab.*", "tekken.json"),
        "save its tokenizer into the same folder",
    ),
}
"""What a folder must hold: name -> (file patterns of which one must match, what to do when none does)."""


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise CheckpointError(
            f"{folder}: no such folder; give a folder that holds a checkpoint, or a hub name"
        )
    for what, (patterns, advice) in _NEEDED.items():
        if not any(True for pattern in patterns for _ in folder.glob(pattern)):
            raise CheckpointError(f"{folder}: no {what} ({' or '.join(patterns)}); {advice}")


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Small models load in a blink, and a bar per checkpoint would bury the log."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
