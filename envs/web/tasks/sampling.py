"""Draws tasks. A seed belongs to one split alone, and kinds are either trained on or kept for the other panels."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping

from envs.web.browser.pool import Pool
from envs.web.kinds.kind import Kind
from envs.web.kinds.scene import Scene
from envs.web.kinds.table import KINDS
from rlanything.core.types import Task

ENV = "web"
SPARE = 1.2
"""Pages that are looked at for each task that is asked for: some pages do not ask for what their kind describes."""
BATCH = 10
"""Pages that are looked at in one call."""
ROUNDS = 40
"""Rounds of drawing before the kinds are said to have too few pages."""
SEEDS = 10**9


def web_task(kind: str, seed: str, instruction: str, hint: str, split: str) -> Task:
    """The task. Its sentence is what the page asks for, and the hint."""
    said = f"{instruction} Hint: {hint}" if hint else instruction
    return Task(ENV, said, {"kind": kind, "seed": seed, "hint": hint}, {"split": split})


def draw_tasks(pool: Pool, split: str, count: int, seed: int, kinds: Mapping[str, float]) -> list[Task]:
    """`count` distinct tasks of a split; the same for the same arguments. kinds: names with their shares."""
    rng, made = random.Random(f"{split} {seed}"), dict[str, Task]()
    for _ in range(ROUNDS):
        if len(made) >= count:
            return list(made.values())[:count]
        wanted = int(SPARE * (count - len(made))) + 1
        drawn = [
            (name, f"{split}-{rng.randrange(SEEDS)}")
            for name in rng.choices(list(kinds), list(kinds.values()), k=wanted)
        ]
        asked = _instructions(pool, drawn)
        for name, page in drawn:
            task = web_task(name, page, asked[name, page], "", split)
            if is_clear(pool, KINDS[name], page, asked[name, page]):
                made.setdefault(task.task_id, task)
    raise ValueError(f"only {len(made)} of {count} tasks were found in {ROUNDS} rounds")


def _instructions(pool: Pool, drawn: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What each page asks for; the pages of a kind are looked at together."""
    by_kind = defaultdict[str, list[str]](list)
    for name, page in drawn:
        by_kind[name].append(page)
    asked = dict[tuple[str, str], str]()
    for name, pages in by_kind.items():
        for start in range(0, len(pages), BATCH):
            part = pages[start : start + BATCH]
            texts = pool.instructions(name, part)
            asked |= {(name, page): text for page, text in zip(part, texts, strict=True)}
    return asked


def is_clear(pool: Pool, kind: Kind, seed: str, instruction: str) -> bool:
    """Whether the page asks for what its kind describes, and for one thing only."""
    if not kind.asks_for(instruction):
        return False
    if kind.clear is None:
        return True
    return kind.clear(Scene(pool.play(kind.name, seed, [], 2), kind.words(instruction)))
