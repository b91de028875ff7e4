"""The answer in a reply: the text after its thought.

A thought stands between `<think>` and `</think>`, or in the channel `analysis` of the harmony format. All replies are
read with this one function: actions, verdicts, critics, rewrites, tests, programs.
"""

from __future__ import annotations

import re

OPENING, CLOSING = "<think>", "</think>"
"""The tags of Qwen3, DeepSeek-R1 and the models distilled from them."""
CHANNEL, MESSAGE, START = "<|channel|>", "<|message|>", "<|start|>"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
HARMONY = (START, CHANNEL, "<|constrain|>", MESSAGE, *_ENDS)
"""The special tokens of gpt-oss (the harmony response format of openai/harmony, docs/format.md)."""
_END = re.compile("|".join(map(re.escape, (START, CHANNEL, *_ENDS))))
_FINAL = "final"


def after_thought(reply: str) -> str | None:
    """The text after the last `</think>`, stripped of surrounding whitespace; the whole reply where there is no tag.

    None: there is no answer. Either the last thought does not end (the reply was cut off), or nothing follows it.
    `</think>` needs no `<think>` in the reply, because the prompt may have opened the thought. Text between two
    thoughts is not an answer: only the text after the last `</think>` is certainly not a thought.

    A reply with a `<|channel|>` has messages in channels, and its answer is the message of its last channel if that is
    `final`. Takes linear time.
    """
    if CHANNEL in reply:
        return _final(reply)
    answer = reply.rpartition(CLOSING)[2]
    if OPENING in answer:
        return None
    if len(answer) == len(reply):
        return reply
    return answer.strip() or None


def _final(reply: str) -> str | None:
    """The message of the last channel; None where that is not `final`, or where its header or message is missing.

    The header of a message is the name of its channel, and may say more: `final <|constrain|>json<|message|>{}`.
    """
    _, _, last = reply.rpartition(CHANNEL)
    header, found, message = last.partition(MESSAGE)
    if not found or header.replace("<", " <").split()[:1] != [_FINAL]:
        return None
    end = _END.search(message)
    if end is not None and message[end.end() :].strip():
        return None  # another message has begun
    return message[: end.start() if end else None].strip() or None
