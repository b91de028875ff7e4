"""Messages to token ids and back, by the tokenizer's own chat template, without ever re-tokenising a sample.

A conversation grows by appending: what the model wrote is kept id by id, and the text that the template puts between
two turns is tokenised on its own. That equals tokenising the whole conversation wherever the end-of-turn marker is a
special token, which splits the text before any merge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from rlanything.core.errors import UserError
from rlanything.core.thoughts import CLOSING, OPENING

Message = Mapping[str, str]

_PROBE = "7319"
"""An assistant's message that no template changes and that no template contains."""


class Chat:
    """The chat template of one tokenizer. `stop_ids`: the ids that end a response, the end-of-turn id first.

    A special token spelled out in a message's content (an environment's or another model's words) gets a space after
    its first character, so that it stays text.

    Templates of models that always think end a prompt with `<think>`. The text of a response then begins with that
    tag, so that its readers (`core.thoughts`) see the whole thought.

    Raises `ValueError` when the tokenizer has no chat template, or one that does not end an assistant's message
    with a token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not tokenizer.chat_template:
            raise ValueError(
                f"the tokenizer {tokenizer.name_or_path!r} has no chat template: set `chat_template`"
            )
        self._tokenizer = tokenizer
        special = {token: str(text) for token, text in tokenizer.added_tokens_decoder.items() if text.special}
        self._markers = re.compile("|".join(map(re.escape, special.values())) or r"(?!)")
        self._unspoken = frozenset(token for token, text in special.items() if text not in (OPENING, CLOSING))
        self._end = self._find_end()
        thinks = self._render([{"role": "user", "content": _PROBE}], True).rstrip().endswith(OPENING)
        self._opened, self._unthought = (OPENING, f"\n{CLOSING}\n\n") if thinks else ("", "")
        eos = tokenizer.eos_token_id
        ends = [self._end] if eos is None else [self._end, eos]
        self.stop_ids: tuple[int, ...] = tuple(dict.fromkeys(ends))
        self._between = lru_cache(maxsize=4096)(self._tokenise_between)

    def start(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a conversation so far, followed by the generation prompt."""
        return self._encode(self._render(messages, True))

    def extend(
        self, prompt_ids: Sequence[int], response_ids: Sequence[int], message: Message
    ) -> tuple[int, ...]:
        """Ids of the conversation after one more response and one more message, with the generation prompt.

        The result begins with exactly `prompt_ids + response_ids`; a response that was cut before its end gets the
        end-of-turn id.
        """
        turn = (*prompt_ids, *response_ids)
        ended = bool(response_ids) and response_ids[-1] in self.stop_ids
        return (turn if ended else (*turn, self._end)) + self._between(message["role"], message["content"])

    def decode(self, response_ids: Sequence[int]) -> str:
        """The text of a response, without special tokens and surrounding white space; tags of thoughts stay.

        It begins with `<think>` where the prompt ends with that.
        """
        kept = [token for token in response_ids if token not in self._unspoken and token not in self.stop_ids]
        text = self._tokenizer.decode(kept)
        assert isinstance(text, str)
        return self._opened + text.strip()

    def encode_choice(self, text: str) -> tuple[int, ...]:
        """The ids of `text` as a whole response, end-of-turn included; special tokens in it are only text.

        Where the prompt opens a thought, the response closes it first: the thought is empty.
        """
        return (*self._encode(self._unthought + self._plain(text)), self._end)

    def _encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def _render(self, messages: Sequence[Message], prompt: bool) -> str:
        conversation = [{**message, "content": self._plain(message["content"])} for message in messages]
        try:
            text = self._tokenizer.apply_chat_template(
                conversation, tokenize=False, add_generation_prompt=prompt
            )
        except TemplateError as error:
            raise UserError(
                f"the chat template of {self._tokenizer.name_or_path!r} fails: {error}"
            ) from error
        assert isinstance(text, str)
        return text

    def _plain(self, content: str) -> str:
        """Content in which special tokens are only text: nobody's words may end a turn or open another."""
        return self._markers.sub(lambda found: f"{found[0][0]} {found[0][1:]}", content)

    def _after_probe(self, messages: Sequence[Message], prompt: bool) -> str:
        """What the template writes after an assistant's message that follows a user's one."""
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
                "special token: there is no end of turn to sample"
            )
        return tail[0]

    def _tokenise_between(self, role: str, content: str) -> tuple[int, ...]:
        ids = self._encode(self._after_probe([{"role": role, "content": content}], True).lstrip())
        if ids[:1] != (self._end,):
            raise ValueError(
                f"the chat template ends an assistant's message differently before role {role!r}"
            )
        return ids[1:]


def stop_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The ids that end a response: the template's end of turn, and the tokenizer's end of sequence.

    Raises `ValueError` when the tokenizer has neither.
    """
    if tokenizer.chat_template:
        return Chat(tokenizer).stop_ids
    if tokenizer.eos_token_id is None:
        raise ValueError(
            f"the tokenizer {tokenizer.name_or_path!r} has neither a chat template nor an eos token"
        )
    return (tokenizer.eos_token_id,)
