"""Which hints a task may have. A hint is a sentence for the agent; it may come from a model, so it is only ever shown.

A hint must not contradict the task. What can be decided is decided: a command that it names must be one of the expert's
way, a text that it quotes must be in the instruction or on that way, it is in English as the task is, and it must not
forbid anything.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from envs import wording
from envs.computer.short import FORMS
from envs.web.play.episode import Episode
from rlanything.core.types import InvalidProposal

LONGEST = 160
"""Characters of a hint."""
MOST_STEPS = 30
_ALLOWED = re.compile(r"[A-Za-z0-9 .,;:'\"@#/()+-]*", re.ASCII)
_COMMAND = re.compile(r"\b(click|double|right|hover|type|scroll) (\d+)\b")
_QUOTED = re.compile(r'"([^"]*)"')


def way(episode: Episode) -> tuple[set[str], set[str]]:
    """(commands, texts) of all solutions that the expert may take from the start: good commands, and what they name.

    The episode must be at its start. It is played to its end.
    """
    commands, texts = set[str](), {episode.instruction}
    for _ in range(MOST_STEPS):
        good = {} if episode.done else episode.setting.kind.good(episode.scene)
        if not good:
            break
        commands |= good.keys()
        texts |= {item.name for item in episode.view.elements if any(_is_for(c, item.number) for c in good)}
        episode.step(next(iter(good)))
    return commands, texts


def check(hint: str, commands: Collection[str], texts: Collection[str]) -> None:
    """Raise `InvalidProposal`, with the reason, for a hint that is not allowed or that contradicts the task."""
    for reason in objections(hint, commands, texts):
        raise InvalidProposal(reason)


def objections(hint: str, commands: Collection[str], texts: Collection[str]) -> Iterator[str]:
    """What is wrong with a hint, if anything."""
    if reason := malformed(hint):
        yield reason
    # Texts that are typed and names of elements may be of any language, or of none.
    known = " ".join((FORMS, *commands, *texts)).replace('"', " ")
    if wording.in_another_language(hint, known):
        yield "the hint is in another language than its task"
    for verb, number in _COMMAND.findall(hint.lower()):
        if not any(
            command == f"{verb} {number}" or command.startswith(f"{verb} {number} ") for command in commands
        ):
            yield f"the hint names a command ({verb} {number}) that does not lead to the goal"
    for quoted in _QUOTED.findall(hint):
        if not any(quoted in text for text in texts):
            yield "the hint quotes a text that the task does not speak of"


def malformed(hint: str) -> str:
    """Why a text cannot be a hint of any task, or ''."""
    if len(hint) > LONGEST:
        return f"the hint has more than {LONGEST} characters"
    if not _ALLOWED.fullmatch(hint):
        return "the hint has signs other than letters, digits and those of a plain English sentence"
    return "the hint forbids something; a hint says what to do" if wording.forbids(hint) else ""


def _is_for(command: str, number: int) -> bool:
    return command.split(" ")[1] == str(number)
