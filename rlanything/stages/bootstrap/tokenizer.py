"""The embedded models' tokenizer: a Qwen2 tokenizer whose added tokens are the phrases of the games.

With one token a word, an episode would be two to three times as long. Phrases are found by a byte-pair encoding that
may merge across spaces. It does not merge across numbers, nor across names that a number follows ("cabinet 1"). So a
name is the same token in a command and in an observation, and a larger room needs no new tokens.

Phrases are added tokens because transformers loads every qwen2 folder with Qwen2Tokenizer, whatever class and
pre-tokenizer the folder declares. Added tokens are matched before any pre-tokenizer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerBase
from transformers.models.qwen2 import Qwen2Tokenizer

END = "<|end|>"
PAD = "<|pad|>"
ROLES = ("system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}" + END + "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NAMED = re.compile(r"\b([a-z]+) \d+")
BASE = 384
"""Entries of the byte-level fallback: 256 bytes and the most frequent merges."""
NUMBERS = 40
"""Numbers below this are tokens, even if they are not in the corpus."""


def train_tokenizer(texts: Iterable[str], vocab: int) -> PreTrainedTokenizerBase:
    """A tokenizer of at most `vocab` entries with the chat template of the embedded models.

    Raises `ValueError` when `vocab` leaves no room for phrases.
    """
    texts = list(texts)
    special = [PAD, END, *(f"<|{role}|>" for role in ROLES)]
    room = vocab - BASE - len(special) - NUMBERS
    if room <= 0:
        raise ValueError(f"a vocabulary of {vocab} is too small; the least is {vocab - room + 1}")
    fallback = Qwen2Tokenizer().train_new_from_iterator(texts, BASE, show_progress=False)
    tokenizer = Qwen2Tokenizer(
        vocab=_model(fallback)["vocab"],
        merges=[tuple(merge) for merge in _model(fallback)["merges"]],  # type: ignore[misc]  # BPE takes pairs
        eos_token=END,
        pad_token=PAD,
        unk_token=PAD,
    )
    tokenizer.add_tokens([AddedToken(token, special=True) for token in special], special_tokens=True)
    numbers = [f" {n}" for n in range(NUMBERS)]
    chosen = [p for p in phrases(texts, 4 * vocab) if p not in numbers][:room]
    # single_word needs a word boundary at both ends, so it is only set for phrases that begin with a letter or digit.
    tokenizer.add_tokens(
        [AddedToken(p, single_word=p[0].isalnum(), normalized=False) for p in [*numbers, *chosen]]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def phrases(texts: Sequence[str], vocab: int) -> list[str]:
    """The pieces of two or more characters that a phrase-level encoding of the texts uses, most frequent first."""
    names = sorted({name for text in texts for name in NAMED.findall(text)}, key=lambda n: (-len(n), n))
    coder = Tokenizer(models.BPE())
    coder.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_pattern(names)), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    coder.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    coder.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=alphabet, show_progress=False)
    )
    used = Counter(token for coded in coder.encode_batch(texts) for token in coded.ids)
    counted = [(coder.decode([token]), count) for token, count in used.items()]
    ranked = sorted(counted, key=lambda item: (-item[1], item[0]))
    return [text for text, _ in ranked if len(text) > 1 and "\ufffd" not in text]


def _model(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    return parsed


def _pattern(names: list[str]) -> str:
    """A pattern that matches names, numbers and line ends. Names and numbers include the space before them."""
    words = "|".join(names)
    return (rf" ?\b(?:{words})\b|" if names else "") + r" ?\d+|\n+"
