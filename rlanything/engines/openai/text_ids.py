"""A conversation as ids that can be turned back into its text, for models whose tokenizer is not here.

An endpoint takes messages and returns text. The loop works with ids: prompts that extend each other, and responses that
are stored as ids. So the bytes of a text, as UTF-8, become ids: one id for three bytes. No text is changed or lost, and
no tokenizer is needed. Three bytes are about as long as one token, so the number of ids estimates the number of tokens.

The ids below 256 are marks: one for each role, one for the end of a message, and two for a picture. No text has such an
id, so no content can begin or end a message, or show a picture. Ids say where a picture is. Its name, beside them, says
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from rlanything.core.images.messages import Message, Part
from rlanything.core.images.tokens import estimate

WIDTH = 3
"""Most bytes of one id."""
ROLES = {"system": 1, "user": 2, "assistant": 3}
END = 4
"""The mark that ends a message."""
PICTURE, MORE = 5, 6
"""The mark that begins a picture, and the mark of its other tokens, so that the number of ids stays an estimate."""
_NAMES = {mark: role for role, mark in ROLES.items()}

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


def messages(prompt: Sequence[int], images: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The messages of a prompt, without the open turn at its end. images: the names of its pictures, in order.

    The content of a message with pictures is a list of parts, {type: text, text} and {type: image, image}. Raises
    `ValueError` for ids that are no prompt, and for more or fewer pictures than names.
    """
    if not prompt or prompt[-1] != ROLES["assistant"]:
        raise ValueError("a prompt must end with the assistant's turn")
    if (places := prompt.count(PICTURE)) != len(images):
        raise ValueError(f"a prompt has places for {places} pictures, and {len(images)} are named")
    found: list[dict[str, Any]] = []
    names = iter(images)
    start = 0
    for place, one in enumerate(prompt[:-1]):
        if one != END:
            continue
        role, *content = prompt[start:place]
        if role not in _NAMES:
            raise ValueError(f"{role}: a message must begin with one of the marks {sorted(_NAMES)}")
        found.append({"role": _NAMES[role], "content": _content(content, names)})
        start = place + 1
    if start != len(prompt) - 1 or not found:
        raise ValueError("a prompt must hold messages that have ended")
    return found


def _content(ids: Sequence[int], names: Iterator[str]) -> str | list[dict[str, str]]:
    """The content of a message: a text, or parts where it shows pictures. names: of those that follow."""
    if PICTURE not in ids:
        return decode(ids)
    parts: list[dict[str, str]] = []
    for shows, run in groupby(ids, lambda one: one in (PICTURE, MORE)):
        if not shows:
            parts.append({"type": "text", "text": decode(run)})
            continue
        first, *rest = run
        if first == MORE:
            raise ValueError(f"{MORE}: a picture must begin with the mark {PICTURE}")
        parts += [{"type": "image", "image": next(names)} for mark in (first, *rest) if mark == PICTURE]
    return parts


def picture(width: int, height: int) -> Ids:
    """The ids of a picture of so many pixels: about as many as models have tokens for it."""
    return (PICTURE, *(MORE,) * (estimate(width, height) - 1))


def tokens_of_pictures(prompt: Sequence[int]) -> int:
    """How many ids of a prompt stand for pictures."""
    return sum(one in (PICTURE, MORE) for one in prompt)


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

    def _message(self, role: str, content: str | Sequence[Part]) -> Ids:
        parts: Sequence[Part] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said = (
            encode(part["text"]) if part["type"] == "text" else picture(part["width"], part["height"])
            for part in parts
        )
        return (ROLES[role], *(one for ids in said for one in ids), END)
