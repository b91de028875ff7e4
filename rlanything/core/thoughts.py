"""The answer in a reply: the text after its thought, which stands between `<think>` and `</think>`.

All replies are read with this one function: actions, verdicts, critics, rewrites, tests, programs.
"""

from __future__ import annotations

OPENING, CLOSING = "<think>", "</think>"
"""The tags of Qwen3, DeepSeek-R1 and the models distilled from them."""


def after_thought(reply: str) -> str | None:
    """The text after the last `</think>`, stripped of surrounding whitespace; the whole reply where there is no tag.

    None: there is no answer. Either the last thought does not end (the reply was cut off), or nothing follows it.
    `</think>` needs no `<think>` in the reply, because the prompt may have opened the thought. Text between two
    thoughts is not an answer: only the text after the last `</think>` is certainly not a thought. Takes linear time.
    """
    answer = reply.rpartition(CLOSING)[2]
    if OPENING in answer:
        return None
    if len(answer) == len(reply):
        return reply
    return answer.strip() or None
