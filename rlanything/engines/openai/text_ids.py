"""A conversation as ids that can be turned back into its text, for models whose tokenizer is not here.

An endpoint takes messages and returns text. The loop works with ids: prompts that extend each other, and responses that
are stored as ids. So the bytes of a text, as UTF-8, become ids: one id for three bytes. No text is changed or lost, and
no tokenizer is needed. Three bytes are about as long as one token, so the number of ids estimates the number of tokens.

The ids below 256 are marks: one for each role, and one for the end of a message. No text has such an id, so no content
can begin or end a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

WIDTH = 3
"""Most bytes of one id."""
ROLES = {"system": 1, "user": 2, "assistant": 3}
END = 4
"""The mark that ends a message."""
_NAMES = {mark: role for role, mark in ROLES.items()}

Message = Mapping[str, str]
Ids = tuple[int, ...]


def encode(text: str) -> Ids:
    """The ids of a text. A 1 stands before the bytes, so that bytes of value 0 count. A lone surrogate becomes `?`."""
    data = text.encode("utf-8", "replace")
    return tuple(
        int.from_bytes(b"\x01" + data[start : start + WIDTH], "big") for start in range(0, len(data), WIDTH)
    )


def decode(ids: Iterable[int]) -> str:
    """The text of ids, without marks. Raises `ValueError` for an id that is neither text nor a mark."""
    data = bytearray()
    for one in ids:
        if one in _NAMES or one == END:
            continue
        length = (one.bit_length() - 1) // 8
        if not 1 <= length <= WIDTH or one.bit_length() != 8 * length + 1:
            raise ValueError(f"{one}: not an id of a text")
        data += (one - (1 << (8 * length))).to_bytes(length, "big")
    return data.decode("utf-8", "replace")


def messages(prompt: Sequence[int]) -> list[dict[str, str]]:
    """The messages of a prompt, without the open turn at its end. Raises `ValueError` for ids that are no prompt."""
    if not prompt or prompt[-1] != ROLES["assistant"]:
        raise ValueError("a prompt must end with the assistant's turn")
    found: list[dict[str, str]] = []
    start = 0
    for place, one in enumerate(prompt[:-1]):
        if one != END:
            continue
        role, *content = prompt[start:place]
        if role not in _NAMES:
            raise ValueError(f"{role}: a message must begin with one of the marks {sorted(_NAMES)}")
        found.append({"role": _NAMES[role], "content": decode(content)})
        start = place + 1
    if start != len(prompt) - 1 or not found:
        raise ValueError("a prompt must hold messages that have ended")
    return found


class TextChat:
    """The chat format of a model behind an endpoint. It has the methods of `engines.chat.Chat`."""

    stop_ids: Ids = (END,)

    def start(self, conversation: Sequence[Message]) -> Ids:
        """Ids of a conversation so far, followed by the mark of the model's turn."""
        said = (self._message(message["role"], message["content"]) for message in conversation)
        return (*(one for ids in said for one in ids), ROLES["assistant"])

    def extend(self, prompt_ids: Sequence[int], response_ids: Sequence[int], message: Message) -> Ids:
        """Ids after one more response and one more message. They begin with exactly `prompt_ids + response_ids`."""
        turn = (*prompt_ids, *response_ids)
        ended = bool(response_ids) and response_ids[-1] == END
        following = self._message(message["role"], message["content"])
        return (*turn, *(() if ended else (END,)), *following, ROLES["assistant"])

    def decode(self, response_ids: Sequence[int]) -> str:
        """The text of a response, without surrounding white space. Tags of thoughts stay."""
        return decode(response_ids).strip()

    def encode_choice(self, text: str) -> Ids:
        """The ids of `text` as a whole response."""
        return (*encode(text), END)

    def _message(self, role: str, content: str) -> Ids:
        return (ROLES[role], *encode(content), END)
