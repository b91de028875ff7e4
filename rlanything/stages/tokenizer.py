"""The embedded models' tokenizer: learned from the games' text, with whole phrases as single tokens.

Ordinary word-level splitting makes an episode three times longer than it needs to be for a tiny model. Here the text
is cut around names that carry a number ("cabinet 1") and around the numbers; what stands between them ("You arrive
at", ", you see a") may merge into one token. Names stay tokens of their own, so that "cabinet" is the same thing in a
command and in an observation, and numbers too, so that larger rooms need no new tokens. Bytes are the fallback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|end|>"
PAD = "<|pad|>"
ROLES = ("system", "user", "assistant")
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}" + END + "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NAMED = re.compile(r"\b([a-z]+) \d+")


def train_tokenizer(texts: Iterable[str], vocab: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of at most `vocab` entries with the chat template of the embedded models."""
    texts = list(texts)
    names = sorted({name for text in texts for name in NAMED.findall(text)}, key=lambda n: (-len(n), n))
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_pattern(names)), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    raw.decoder = decoders.ByteLevel()
    special = [PAD, END, *(f"<|{role}|>" for role in ROLES)]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token=END, pad_token=PAD)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _pattern(names: list[str]) -> str:
    """Names, numbers, line ends: each with the space before it, each a piece of its own."""
    words = "|".join(names)
    return (rf" ?\b(?:{words})\b|" if names else "") + r" ?\d+|\n+"
