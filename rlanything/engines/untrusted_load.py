"""A trial load of an untrusted checkpoint, in a child process with limits on time and memory.

A chat template is a program, a tokenizer holds regular expressions, and a configuration says how many layers are built.
Each of them can take endless time or memory. So a child process tries them first: it loads the tokenizer, writes a
conversation with it, and builds the model without weights.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
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
from transformers.utils import logging

from rlanything.engines.chat import Chat
from rlanything.files.limits import limit_process

CPU_S = 8
"""Seconds of CPU that a trial may take. Large tokenizers need two."""
WALL_S = 600
"""Seconds of wall-clock time that a trial may take, downloads of tokenizers from the hub included."""
MEMORY_MB = 2048
"""Memory that a trial may take in addition to that of this process."""
MOST_TOKENS = 65_536
"""The most tokens that a template may make of the short conversation of the trial."""
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
    config = AutoConfig.from_pretrained(source, revision=revision, **NO_CODE)
    if "/" in str(getattr(config, "_attn_implementation", "")):
        raise ValueError(f"its configuration names code on the hub ({config._attn_implementation})")
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, **NO_CODE)
    if not tokenizer.chat_template:
        raise ValueError(
            "the tokenizer has no chat template; add chat_template.jinja, or use an instruct model"
        )
    with torch.device("meta"):
        model = auto_class(config).from_config(config, **NO_CODE)
    rows = model.get_input_embeddings().weight.shape[0]
    chat = Chat(tokenizer)
    start = chat.start([{"role": "system", "content": "You play."}, _TURN])
    ids = chat.extend(start, chat.encode_choice("look around"), _TURN)
    chat.decode(ids)
    if len(ids) > MOST_TOKENS:
        raise ValueError(f"its chat template makes {len(ids):,} tokens of two short messages")
    if max(ids) >= rows:
        raise ValueError(f"its tokenizer gives the id {max(ids)}, and its embeddings have {rows} rows")
