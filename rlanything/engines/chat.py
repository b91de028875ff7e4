"""Messages to token ids and back, by the tokenizer's own chat template, without ever re-tokenising a sample.

A conversation grows by appending. The ids that the model sampled are kept. The text that the template puts between
two turns is tokenised on its own. The result equals tokenising the whole conversation when the end-of-turn marker is a
special token: a tokenizer splits text at special tokens before it merges anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from rlanything.core.errors import UserError
from rlanything.core.images.messages import Message
from rlanything.core.thoughts import CHANNEL, CLOSING, HARMONY, OPENING

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase

    from rlanything.engines.sight.eyes import Eyes

_DAY = (
    "{%- macro strftime_now(format) -%}"
    "{%- if format == '%Y-%m-%d' -%}2026-01-01{%- else -%}01 Jan 2026{%- endif -%}"
    "{%- endmacro -%}"
)
"""The function of templates that write a date, in the two forms that they ask for."""
_PROBE = "7319"
"""The content of an assistant's message that stands for any other. Templates neither change nor contain it."""


class Chat:
    """The chat template of one tokenizer.

    `stop_ids`: the ids that end a response: the template's end of turn first, the tokenizer's end of sequence, and
    those of `ends` that are special tokens.

    A special token spelled out in a message's content (an environment's or another model's words) gets a space after
    its first character, so that it stays text.

    Templates of models that always think end a prompt with `<think>`. The text of a response then begins with that
    tag, so that `core.thoughts` sees the whole thought.

    eyes: of a model that reads pictures. A picture takes as many ids of its token as it has pixels for.
    ends: what else the model may end a response with (`declared_ends`).

    Raises `ValueError` when the tokenizer has no chat template, or when the template does not end an assistant's
    message with one special token. Raises `UserError` when the template fails or leaves out an assistant's message.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, eyes: Eyes | None = None, ends: Sequence[int] = ()
    ) -> None:
        if not tokenizer.chat_template:
            raise ValueError(
                f"the tokenizer {tokenizer.name_or_path!r} has no chat template: set `chat_template`"
            )
        self._tokenizer, self._eyes = tokenizer, eyes
        special = {token: str(text) for token, text in tokenizer.added_tokens_decoder.items() if text.special}
        self._dated = _without_clock(tokenizer.chat_template)
        self._markers = _either(special.values())
        # Some templates write roles as tokens that are not declared special.
        self._markers = _either(
            [*special.values(), *(t for t in self._written() if t not in special.values())]
        )
        # Phi's tokenizers have some of harmony's tokens without its channels. There they say nothing about thoughts.
        tags = (OPENING, CLOSING, *(HARMONY if CHANNEL in special.values() else ()))
        self._dropped = frozenset(token for token, text in special.items() if text not in tags)
        self._end = self._find_end()
        thinks = self._render([{"role": "user", "content": _PROBE}], True).rstrip().endswith(OPENING)
        self._thought_start, self._thought_end = (OPENING, f"\n{CLOSING}\n\n") if thinks else ("", "")
        eos = tokenizer.eos_token_id
        own = [self._end] if eos is None else [self._end, eos]
        self.stop_ids: tuple[int, ...] = tuple(
            dict.fromkeys([*own, *(end for end in ends if end in special)])
        )
        self._between = lru_cache(maxsize=4096)(self._tokenise_between)

    def start(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a conversation so far, followed by the generation prompt.

        Raises `UserError` for a picture that the model cannot read, or for which the template has no place.
        """
        ids = self._encode(self._render(messages, True))
        pictures = list(_pictures(messages))
        return self._with_pictures(ids, pictures) if pictures else ids

    def extend(
        self, prompt_ids: Sequence[int], response_ids: Sequence[int], message: Message
    ) -> tuple[int, ...]:
        """Ids of the conversation after one more response and one more message, with the generation prompt.

        The result begins with exactly `prompt_ids + response_ids`. A response that was cut off gets the end-of-turn
        id. Raises `ValueError` when the template ends an assistant's message differently before this role.
        """
        turn = (*prompt_ids, *response_ids)
        ended = bool(response_ids) and response_ids[-1] in self.stop_ids
        return (turn if ended else (*turn, self._end)) + self._between(message["role"], message["content"])

    def decode(self, response_ids: Sequence[int]) -> str:
        """The text of a response, without special tokens and surrounding white space. Tags of thoughts stay.

        The text begins with `<think>` where the prompt ends with `<think>`.
        """
        kept = [token for token in response_ids if token not in self._dropped and token not in self.stop_ids]
        text = self._tokenizer.decode(kept)
        assert isinstance(text, str)
        return self._thought_start + text.strip()

    def encode_choice(self, text: str) -> tuple[int, ...]:
        """The ids of `text` as a whole response, end-of-turn id included. Special tokens in `text` stay text.

        Where the prompt opens a thought, the response closes it at once, so that the thought is empty.
        """
        return (*self._encode(self._thought_end + self._plain(text)), self._end)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _render(self, messages: Sequence[Message], prompt: bool) -> str:
        conversation = [{**message, "content": self._parts(message["content"])} for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(
                conversation, chat_template=self._dated, tokenize=False, add_generation_prompt=prompt
            )
        except TemplateError as error:
            raise UserError(
                f"the chat template of {self._tokenizer.name_or_path!r} fails: {error}"
            ) from error
        assert isinstance(text, str)
        return text

    def _parts(self, content: str | Sequence[Mapping[str, Any]]) -> str | list[dict[str, str]]:
        if isinstance(content, str):
            return self._plain(content)
        return [
            {"type": "text", "text": self._plain(part["text"])}
            if part["type"] == "text"
            else {"type": "image"}
            for part in content
        ]

    def _with_pictures(self, ids: tuple[int, ...], pictures: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """The ids, with each token of a picture repeated as often as its picture needs."""
        if self._eyes is None:
            raise UserError(
                f"{self._tokenizer.name_or_path!r} is to be shown {len(pictures)} pictures, and reads text alone"
            )
        token = self._eyes.token
        if ids.count(token) != len(pictures):
            raise UserError(
                f"the chat template of {self._tokenizer.name_or_path!r} has {ids.count(token)} places for "
                f"{len(pictures)} pictures"
            )
        counts = iter([self._eyes.tokens(part["width"], part["height"]) for part in pictures])
        return tuple(x for i in ids for x in ((i,) * next(counts) if i == token else (i,)))

    def _plain(self, content: str) -> str:
        """The content, with special tokens turned into text, so that no content can end a turn or begin one."""
        return self._markers.sub(lambda found: f"{found[0][0]} {found[0][1:]}", content)

    def _written(self) -> list[str]:
        """The added tokens that the template writes around messages, but tags of thoughts and white space."""
        turns = [{"role": role, "content": _PROBE} for role in ("user", "assistant", "user")]
        texts = [self._render(turns, True)]
        with suppress(UserError):  # some have no system's message
            texts.append(self._render([{"role": "system", "content": _PROBE}, *turns], True))
        ids = dict.fromkeys(token for text in texts for token in self._encode(text))
        added = self._tokenizer.added_tokens_decoder
        found = [str(added[token]) for token in ids if token in added]
        return [text for text in found if text.strip() and text not in (OPENING, CLOSING, *HARMONY)]

    def _after_probe(self, messages: Sequence[Message], prompt: bool) -> str:
        """What the template writes after an assistant's message, which follows a user's message."""
        turn = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": _PROBE}]
        _, found, after = self._render([*turn, *messages], prompt).partition(_PROBE)
        if not found:
            raise UserError(
                f"the chat template of {self._tokenizer.name_or_path!r} leaves out an assistant's message"
            )
        return after

    def _find_end(self) -> int:
        tail = self._encode(self._after_probe([], False).lstrip())
        if not tail or tail[0] not in self._tokenizer.added_tokens_decoder:
            raise ValueError(
                f"the chat template of {self._tokenizer.name_or_path!r} must end an assistant's message with one "
                "special token, so that a response can end"
            )
        return tail[0]

    def _tokenise_between(self, role: str, content: str) -> tuple[int, ...]:
        ids = self._encode(self._after_probe([{"role": role, "content": content}], True).lstrip())
        if ids[:1] != (self._end,):
            raise ValueError(
                f"the chat template ends an assistant's message differently before role {role!r}"
            )
        return ids[1:]


def _either(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern of any of these texts; of nothing where there is none."""
    return re.compile("|".join(map(re.escape, texts)) or r"(?!)")


def _without_clock(template: object) -> str | None:
    """A template that asks for the day, with a day of its own; None for any other.

    With the day of the clock, a run that goes on tomorrow would read other prompts.
    """
    return _DAY + template if isinstance(template, str) and "strftime_now" in template else None


def _pictures(messages: Sequence[Message]) -> Iterator[Mapping[str, Any]]:
    """The pictures of a conversation, in order."""
    for message in messages:
        if not isinstance(message["content"], str):
            yield from (part for part in message["content"] if part["type"] == "image")


def declared_ends(settings: GenerationConfig | None) -> tuple[int, ...]:
    """The ids that a checkpoint's generation_config.json ends a response with. settings: what it was loaded as.

    () where it has none of its own: transformers then makes one of the config.json, whose ids may be those of the
    architecture and not of this tokenizer.
    """
    if settings is None or settings._from_model_config:
        return ()
    ends = settings.eos_token_id
    return () if ends is None else (ends,) if isinstance(ends, int) else tuple(ends)


def stop_ids(tokenizer: PreTrainedTokenizerBase, ends: Sequence[int] = ()) -> tuple[int, ...]:
    """The ids that end a response: see `Chat`. Without a chat template the tokenizer's end of sequence does.

    Raises `ValueError` when the tokenizer has neither.
    """
    if tokenizer.chat_template:
        return Chat(tokenizer, ends=ends).stop_ids
    if tokenizer.eos_token_id is None:
        raise ValueError(
            f"the tokenizer {tokenizer.name_or_path!r} has neither a chat template nor an eos token"
        )
    return (tokenizer.eos_token_id,)
