"""What a warm start teaches, as training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlanything.engines.prompt_trunks import common_prefix
from rlanything.learn.packing import NO_BRANCH, Row


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt, and the response to learn (token ids)."""

    prompt: tuple[int, ...]
    response: tuple[int, ...]


def conversation_rows(turns: Sequence[Turn], context_weight: float = 0.0) -> list[Row]:
    """Rows of an episode's turns. Every response token is a target of weight 1.

    Turns that extend each other share a row. Where that breaks, a new row starts, as in `packing.policy_rows`.
    `context_weight`: weight of the prompt tokens as targets. A prefix that the previous row already holds is left out.
    Predicting observations teaches a small model to look up and copy names, which it needs in order to act.
    """
    rows = [Row()]
    for turn in turns:
        row, known = rows[-1], common_prefix(tuple(rows[-1].ids), turn.prompt)
        if known < len(row.ids):
            row = Row()
            rows.append(row)
        row.read(turn.prompt[len(row.ids) :], len(row.ids), None, NO_BRANCH, NO_BRANCH)
        base = len(row.ids) - 1
        if context_weight:
            for t in range(max(known, 1), base + 1):
                row.learn(t - 1, row.ids[t], (), 0.0, 0.0, context_weight)
        row.read(turn.response, len(row.ids), None, NO_BRANCH, NO_BRANCH)
        for t, token in enumerate(turn.response):
            row.learn(base + t, token, (), 0.0, 0.0, 1.0)
    return rows
