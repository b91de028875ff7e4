"""A reply is read after its thought: what stands between `<think>` and `</think>` is no answer.

Every reader of replies asks this one function: actions, verdicts, critics, rewrites, tests, programs.
"""

from __future__ import annotations

OPENING, CLOSING = "<think>", "</think>"
"""The tags of Qwen3, DeepSeek-R1 and the models that were trained on their replies."""


def after_thought(reply: str) -> str | None:
    """What follows the last thought, without outer blanks; the whole reply where nothing was thought.

    None: there is no answer. The thought does not end (the reply was cut, or a second thought was begun), or nothing
    follows it. A tag that closes a thought which the prompt opened needs no opening tag in the reply. Text between two
    thoughts belongs to the first one, and so do tags inside a thought: only what follows the last `</think>` is
    certainly no thought. Takes linear time.
    """
    answer = reply.rpartition(CLOSING)[2]
    if OPENING in answer:
        return None
    if len(answer) == len(reply):
        return reply
    return answer.strip() or None
