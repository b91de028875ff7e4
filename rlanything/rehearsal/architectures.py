"""The architectures that the paper's models have, as small as they go, with chat templates of the same shape.

Templates are in our own words. What they share with the real ones is what can break a loop: where a turn ends, what is
added when there is no system message, and which thoughts of earlier turns are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.qwen2 import Qwen2Tokenizer

from rlanything.core.errors import ConfigError, unknown
from rlanything.engines.placement import in_room
from rlanything.rehearsal import sighted

VOCAB = 2048
"""Tokens of a stand-in's tokenizer, its marks left out."""
HEAD = 32
"""Size of an attention head: the smallest that every engine can run."""

WIDTH = 2 * HEAD
"""Width of a small stand-in's layers."""

_QWEN2 = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_QWEN3 = (
    "{% set found = namespace(last=0) %}"
    "{% for message in messages %}"
    "{% if message.role == 'user' %}{% set found.last = loop.index0 %}{% endif %}"
    "{% endfor %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' %}"
    "{% set parts = message.content.split('</think>') %}"
    "{% if loop.index0 > found.last %}<think>\n"
    "{{ parts[0].split('<think>')[-1].strip() if parts | length > 1 else '' }}\n</think>\n\n{% endif %}"
    "{{ parts[-1].lstrip('\n') }}"
    "{% else %}{{ message.content }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_LLAMA = (
    "<|begin_of_text|>{% for message in messages %}<|start_header_id|>{{ message.role }}<|end_header_id|>\n\n"
    "{{ message.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
_THOUGHTS = ("<think>", "</think>")
"""Tokens of their own, but no special ones: a decoded reply shows them."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """Models of one architecture, small or with the sizes of a real checkpoint.

    thinks: its replies begin with a thought in <think> tags. opens: its chat template writes the first of these tags.
    """

    config: Callable[..., PreTrainedConfig]
    model: Callable[..., PreTrainedModel]
    coder: Callable[[Iterable[str]], PreTrainedTokenizerBase]
    template: str
    special: tuple[str, ...]
    end: str
    thinks: bool = False
    opens: bool = False
    patch: int | None = None
    """Pixels of a side of what the model's eyes read at once; None: it reads text alone."""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a real checkpoint's config.json, but for `model_type`. {}: models are as small as they go."""

    def tokenizer(self, texts: Iterable[str]) -> PreTrainedTokenizerBase:
        """A byte-level tokenizer learned from the texts, of the class that real checkpoints have."""
        made = self.coder(texts)
        made.add_tokens([AddedToken(token, special=True, normalized=False) for token in self.special])
        if self.thinks:
            made.add_tokens([AddedToken(token, special=False, normalized=False) for token in _THOUGHTS])
        made.eos_token, made.pad_token = self.end, self.special[0]
        made.chat_template = self.template
        return made

    def fresh(self, tokenizer: PreTrainedTokenizerBase, seed: int) -> PreTrainedModel:
        """A randomly initialised model of about 0.4M weights, with a head of its own as the large models have."""
        torch.manual_seed(seed)
        return self.model(
            self.config(
                vocab_size=len(tokenizer),
                hidden_size=WIDTH,
                intermediate_size=6 * HEAD,
                num_hidden_layers=2,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=HEAD,
                max_position_embeddings=32768,
                tie_word_embeddings=False,
                initializer_range=0.05,
                **_ends(tokenizer),
                **({} if self.patch is None else sighted.ids(tokenizer)),
            )
        )

    def of_real_size(
        self, tokenizer: PreTrainedTokenizerBase, seed: int, device: torch.device
    ) -> PreTrainedModel:
        """A randomly initialised model with `sizes`, in bfloat16, made on a device.

        Raises `MachineError` where the device has no room for it.
        """
        torch.manual_seed(seed)
        return made_on(self.config(**{**self.sizes, **_ends(tokenizer)}), torch.bfloat16, device)

    def save_eyes(self, folder: Path) -> None:
        """Write the image processor of a model that reads pictures."""
        if self.patch is not None:
            sighted.processor(self.patch).save_pretrained(str(folder))


def made_on(config: PreTrainedConfig, form: torch.dtype, device: torch.device) -> PreTrainedModel:
    """A randomly initialised model of any size, made on a device. The caller seeds PyTorch.

    Raises `MachineError` where the device has no room for it.
    """
    with in_room(f"a model of this size has no room on {device}"), device:
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config, dtype=form)
    return model


def _qwen(texts: Iterable[str]) -> PreTrainedTokenizerBase:
    made: PreTrainedTokenizerBase = Qwen2Tokenizer().train_new_from_iterator(
        texts, VOCAB, show_progress=False
    )
    return made


def _llama(texts: Iterable[str]) -> PreTrainedTokenizerBase:
    coder = Tokenizer(models.BPE())
    coder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    coder.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    coder.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=VOCAB, initial_alphabet=alphabet, show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=coder)


ARCHITECTURES = {
    "qwen2": Architecture(
        Qwen2Config,
        Qwen2ForCausalLM,
        _qwen,
        _QWEN2,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        "<|im_end|>",
    ),
    "qwen3": Architecture(
        Qwen3Config,
        Qwen3ForCausalLM,
        _qwen,
        _QWEN3,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
        "<|im_end|>",
        True,
    ),
    "qwen2_5_vl": Architecture(
        sighted.qwen2_5_vl,
        Qwen2_5_VLForConditionalGeneration,
        _qwen,
        sighted.TEMPLATE,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *sighted.MARKS),
        "<|im_end|>",
        patch=14,
    ),
    "qwen3_vl": Architecture(
        sighted.qwen3_vl,
        Qwen3VLForConditionalGeneration,
        _qwen,
        sighted.THINKING,
        ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *sighted.MARKS),
        "<|im_end|>",
        thinks=True,
        opens=True,
        patch=16,
    ),
    "llama": Architecture(
        LlamaConfig,
        LlamaForCausalLM,
        _llama,
        _LLAMA,
        ("<|end_of_text|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        "<|eot_id|>",
    ),
}
"""By the `model_type` of their config.json."""


def architecture(name: str, declared: Mapping[str, Any] = MappingProxyType({})) -> Architecture:
    """The architecture called `name`, or that of a real checkpoint of this name, with its sizes.

    declared: name of a checkpoint -> fields of its config.json. Raises `ConfigError` with the nearest name, and for a
    checkpoint whose architecture is not there, or reads pictures.
    """
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    if name not in declared:
        raise ConfigError(f"architecture {name!r}: {unknown(name, [*ARCHITECTURES, *declared])}")
    sizes = dict(declared[name])
    kind = sizes.pop("model_type", None)
    texts = [known for known, made in ARCHITECTURES.items() if made.patch is None]
    if kind not in texts:
        raise ConfigError(
            f"{name}: model_type = {kind!r}: only {', '.join(texts)} are rehearsed at real size"
        )
    return replace(ARCHITECTURES[kind], sizes=sizes)


def _ends(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """The ids at which a text begins and ends, as config.json has them."""
    return {
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": None,
    }
