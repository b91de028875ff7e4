"""The texts of a critic: a failed rollout as it reads it, and the summary in its reply."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

from rlanything.core.thoughts import after_thought
from rlanything.loop.reward_model import FailedRollout

SENTENCES = 2
"""How many sentences of a summary are kept (paper: 2). The rest stays in the stored reply only."""
_BRACES = re.compile(r"\\boxed\{|[{}]")
_COMMANDS = re.compile(r"\\[a-z]+\{|[{}]")
_END = re.compile(r"""[.!?]["')\]]*\s+(?=["'(\[]?[A-Z])""")


def read_summary(reply: str) -> tuple[str, str]:
    r"""The summary in a reply: (summary, '') or ('', why there is none). The \boxed{...} closed last counts."""
    answer = after_thought(reply) or ""
    place = _box(answer)
    if place is None:
        return "", r"the reply has no closed \boxed{...}"
    text = " ".join(_COMMANDS.sub("", answer[slice(*place)]).split())
    ends = [end.end() for end in islice(_END.finditer(text), SENTENCES)]
    summary = text[: ends[-1]].rstrip() if len(ends) == SENTENCES else text
    return summary, "" if summary else "the box is empty"


def _box(text: str) -> tuple[int, int] | None:
    """Start and end of the content of the box that is closed last; None without one. One pass over the text."""
    opened: list[int | None] = []
    found = None
    for mark in _BRACES.finditer(text):
        if mark[0] != "}":
            opened.append(None if mark[0] == "{" else mark.end())
        elif opened and (start := opened.pop()) is not None:
            found = start, mark.start()
    return found


def by_importance(failed: FailedRollout) -> list[int]:
    """Indices of the steps, the most important first: the marked steps, then the others, each from the newest on."""
    places = range(len(failed.steps))
    return sorted(places, key=lambda place: (not failed.steps[place].wrong, -place))


def rollout_text(failed: FailedRollout, kept: Collection[int]) -> str:
    """The text of a rollout. Steps whose index is not in `kept` are counted, not shown."""
    lines, gap = [f"Rollout {failed.rollout} begins.", failed.opening], 0
    for place, step in enumerate(failed.steps):
        if place not in kept:
            gap += 1
            continue
        lines += _gap(gap)
        gap = 0
        lines.append(f"[{step.number}{', wrong' if step.wrong else ''}] {step.text}")
    return "\n".join([*lines, *_gap(gap), f"Rollout {failed.rollout} ends. {failed.ending}"])


def _gap(count: int) -> list[str]:
    return [f"... {count} left out ..."] if count else []
