"""What an adapter may change of a task: its template, and its hint. The answer is JSON with one key.

`{"click-tab-2-hard": ""}` asks for the harder template without a hint, `{"click-tab": "start with click 3"}` for the
easier one with a hint. The seed of the page stays.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection

from envs.web.play.text import Style
from envs.web.tasks import hints
from envs.web.tasks.ladders import further, templates
from envs.web.tasks.sampling import web_task
from envs.web.tasks.stage import Stage
from rlanything.core.types import Direction, InvalidProposal, Task

REPLY = re.compile(r"\{[^{}]*\}")
LONGEST_REPLY = 20_000
"""Characters of a reply that are read, from its end."""


class Edit:
    """Templates and hints. kept: kinds that no rewrite may lead to, because panels are of them."""

    def __init__(self, stage: Stage, kept: Collection[str], style: Style) -> None:
        self._stage, self._kept, self._style = stage, frozenset(kept), style

    def describe(self, task: Task) -> str:
        """The task, its templates from easy to hard with what each asks for, a hint, and the task as a reply."""
        kind, seed = task.payload["kind"], task.payload["seed"]
        names = templates(kind, self._kept)
        asked = [f"{name}: {self._style.word(self._stage.instruction(name, seed))}" for name in names]
        hint = self._stage.hint(kind, seed)
        return "\n".join([*asked, f"hint: {hint}", _reply(kind, task.payload["hint"])])

    def parse(self, parent: Task, reply: str) -> Task:
        """The task that a reply asks for. Raises `InvalidProposal`; the reply is untrusted text."""
        kind, hint = _read(reply)
        known = templates(parent.payload["kind"], self._kept)
        if kind not in known:
            raise InvalidProposal(f"the key must be one of {', '.join(known)}")
        if (kind, hint) == (parent.payload["kind"], parent.payload["hint"]):
            raise InvalidProposal("the reply changes nothing")
        seed = parent.payload["seed"]
        if hint:
            hints.check(hint, *self._stage.way(kind, seed))
        asked = self._stage.instruction(kind, seed)
        return web_task(kind, seed, asked, hint, parent.metadata.get("split", ""))

    def rewrite(self, task: Task, direction: Direction, seed: int) -> str:
        """Harder: the next template, or without the hint. Easier: the template before, or with a hint."""
        kind, hint = task.payload["kind"], task.payload["hint"]
        ways = [_reply(name, "") for name in further(kind, direction, self._kept)[:2]]
        if direction is Direction.HARDER and hint:
            ways.append(_reply(kind, ""))
        if direction is Direction.EASIER and not hint:
            ways.append(_reply(kind, self._stage.hint(kind, task.payload["seed"])))
        if not ways:
            raise InvalidProposal(f"{kind} has no {direction.value} template and no hint to change")
        return random.Random(seed).choice(ways)


def _reply(kind: str, hint: str) -> str:
    return json.dumps({kind: hint})


def _read(reply: str) -> tuple[str, str]:
    """(key, value) of the last JSON object in a reply."""
    found = REPLY.findall(reply[-LONGEST_REPLY:])
    if not found:
        raise InvalidProposal('no JSON object such as {"click-tab": ""}')
    try:
        asked = json.loads(found[-1])
    except (ValueError, RecursionError):
        raise InvalidProposal("the last {...} is not JSON") from None
    if len(asked) != 1:
        raise InvalidProposal("the JSON object must have one key, the name of a template")
    [(kind, hint)] = asked.items()
    if not isinstance(hint, str):
        raise InvalidProposal("the value must be a text: the hint, or an empty text")
    return kind, " ".join(hint.split())
