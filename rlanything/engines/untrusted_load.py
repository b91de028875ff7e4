"""A trial load of an untrusted checkpoint, in a child process with limits on time and memory.

A chat template is a program, a tokenizer holds regular expressions, and a configuration says how many layers are built.
Each of them can take endless time or memory. So a child process tries them first: it loads the tokenizer, writes a
conversation with it, and builds the model without weights. It also refuses what would make transformers read other
files than the safetensors of the checkpoint, and a model that is far larger than these.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    PreTrainedConfig,
)
from transformers.utils import find_adapter_config_file, logging

from rlanything.engines import sources
from rlanything.engines.chat import Chat
from rlanything.engines.sources import PICKLES, WEIGHTS
from rlanything.files.limits import limit_process
from rlanything.files.reader import read_object

CPU_S = 8
"""Seconds of CPU that a trial may take. Large tokenizers need two."""
WALL_S = 600
"""Seconds of wall-clock time that a trial may take, downloads of tokenizers from the hub included."""
MEMORY_MB = 2048
"""Memory that a trial may take in addition to that of this process."""
MOST_TOKENS = 65_536
"""The most tokens that a template may make of the short conversation of the trial."""
PER_BYTE = 4
"""The most parameters for each byte of the files of weights. The tightest quantization needs two bits for one."""
_INDEX = "model.safetensors.index.json"
NO_CODE = {"trust_remote_code": False}
"""Arguments of every call that loads a checkpoint. Without them, transformers asks on standard input what to do."""
_LONGEST = 2000
"""Characters of an error message that are kept."""
_TURN = {"role": "user", "content": "You are in a room. What next?"}


def auto_class(config: PreTrainedConfig) -> Any:
    """The class of transformers that makes the model: one that reads text, else one that reads pictures as well."""
    text = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING
    if not text and type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        return AutoModelForImageTextToText
    return AutoModelForCausalLM


def why_unusable(source: str, revision: str | None) -> str:
    """Why a checkpoint cannot be loaded, or ''. Its tokenizer, chat template and configuration are tried."""
    return in_child(lambda: _try(source, revision))


def in_child(work: Callable[[], None]) -> str:
    """Run `work` in a child process. Returns the message of its exception, or why it was stopped, or ''.

    The child is a fork, so that nothing is imported again. It has one thread, so `work` must run no kernel of torch.
    """
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(work, sender), daemon=True)
    child.start()
    sender.close()
    try:
        if receiver.poll(WALL_S):
            return str(receiver.recv())
    except EOFError:
        pass
    finally:
        child.kill()
        child.join()
    return (
        f"its tokenizer, chat template or configuration crashes, or needs more than {CPU_S} s of CPU, {WALL_S} s in "
        f"all, or {MEMORY_MB} MB"
    )


def _report(work: Callable[[], None], sender: Connection) -> None:
    limit_process(CPU_S, MEMORY_MB)
    said = ""
    try:
        work()
    except BaseException as error:  # a panic of the tokenizers library is not an `Exception`
        said = str(error) or type(error).__name__
    sender.send(said[:_LONGEST])
    sender.close()
    os._exit(0)


def _try(source: str, revision: str | None) -> None:
    logging.set_verbosity_error()  # the parent process shows them
    logging.disable_progress_bar()
    if find_adapter_config_file(source, revision=revision) is not None:
        raise ValueError(
            "an adapter lies beside the model (adapter_config.json); merge it into the weights, or remove it"
        )
    config = AutoConfig.from_pretrained(source, revision=revision, **NO_CODE)
    _require_plain(config)
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, **NO_CODE)
    if not tokenizer.chat_template:
        raise ValueError(
            "the tokenizer has no chat template; add chat_template.jinja, or use an instruct model"
        )
    with torch.device("meta"):
        model = auto_class(config).from_config(config, **NO_CODE)
    _require_weights(model, source, revision)
    rows = model.get_input_embeddings().weight.shape[0]
    chat = Chat(tokenizer)
    start = chat.start([{"role": "system", "content": "You play."}, _TURN])
    ids = chat.extend(start, chat.encode_choice("look around"), _TURN)
    chat.decode(ids)
    if len(ids) > MOST_TOKENS:
        raise ValueError(f"its chat template makes {len(ids):,} tokens of two short messages")
    if max(ids) >= rows:
        raise ValueError(f"its tokenizer gives the id {max(ids)}, and its embeddings have {rows} rows")


def _require_plain(config: PreTrainedConfig) -> None:
    """Raise `ValueError` for a configuration that names code, or a file of weights: that file may be a pickle."""
    if "/" in str(getattr(config, "_attn_implementation", "")):
        raise ValueError(f"its configuration names code on the hub ({config._attn_implementation})")
    for part in (config, config.get_text_config()):  # a model that reads text alone is made from the second
        if (named := getattr(part, "transformers_weights", None)) is not None:
            raise ValueError(
                f"its configuration names a file of weights (transformers_weights = {str(named)[:100]!r}); save the "
                "weights as model.safetensors, and remove the key"
            )


def _require_weights(model: torch.nn.Module, source: str, revision: str | None) -> None:
    """Raise `ValueError` for files of weights that are far too small for the model, or that are named elsewhere.

    What files lack, transformers makes before it says so. Names in files differ from those of modules for some
    architectures, so sizes are compared here, and the load itself tells which weights are missing. Of a name on the
    hub, only what is in the cache is looked at.
    """
    folder = Path(source)
    if not folder.is_dir():
        config = sources.cached(source, "config.json", revision)
        if config is None:
            return
        folder = config.parent
    index = folder / _INDEX
    if index.exists():
        _require_names(read_object(index).get("weight_map"))
    files = [*folder.glob(WEIGHTS), *folder.glob(PICKLES)]
    held = sum(file.stat().st_size for file in files)
    needed = sum(parameter.numel() for parameter in model.parameters())
    if files and needed > PER_BYTE * held:
        raise ValueError(
            f"its configuration describes a model of {needed:,} parameters, and its files of weights hold {held:,} "
            "bytes; save the whole model again, or pull the large files of the repository"
        )


def _require_names(shards: Any) -> None:
    """Raise `ValueError` for an index that names anything but files of safetensors in its own folder."""
    for name in shards.values() if isinstance(shards, dict) else [shards]:
        if not (isinstance(name, str) and name.endswith(".safetensors") and Path(name).name == name):
            raise ValueError(f"{_INDEX}: {str(name)[:100]!r} is no *.safetensors beside it")
