"""An episode as messages: what the policy was told and what it replied, turn by turn.

In a conversation (`model.context = chat`) each prompt adds a message to the one before. With `history` each step has
one prompt of its own, whose text the run stores. Where prompts cannot be taken apart, messages hold the observations
and actions, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.core.types import Step, Trajectory
from rlanything.exports.template import Markers, Message, Template

NO_PICTURES = (
    "the policy was shown pictures, and messages do not have them: what it read is more than they say"
)


@dataclass(frozen=True)
class Turns:
    """opening: the messages before the first reply. asked: what each later prompt adds. replies: one a step.

    whole: prompts are conversations. Otherwise every prompt stands alone, and `asked` is what the environment answered.
    alone: the message of each step's prompt where it stands alone."""

    opening: tuple[Message, ...]
    asked: tuple[str, ...]
    replies: tuple[str, ...]
    whole: bool = True
    alone: tuple[str, ...] = ()

    def prompt(self, step: int) -> list[Message]:
        """The messages that the policy read before a step, from 0."""
        if not self.whole:
            return [_message("user", self.alone[step])]
        found = list(self.opening)
        for reply, asked in zip(self.replies[:step], self.asked[:step], strict=True):
            found += [_message("assistant", reply), _message("user", asked)]
        return found

    def completion(self, step: int) -> list[Message]:
        """The reply of a step, as messages."""
        return [_message("assistant", self.replies[step])]

    def conversation(self) -> list[Message]:
        """The episode as one conversation that ends with the last reply; the opening alone without a step."""
        last = len(self.replies) - 1
        if last < 0:
            return list(self.opening)
        found = list(self.opening)
        for k, reply in enumerate(self.replies):
            found.append(_message("assistant", reply))
            if k < last:
                found.append(_message("user", self.asked[k]))
        return found

    def conversations(self) -> list[tuple[int, list[Message]]]:
        """By first step: the one conversation, or one for each step where prompts stand alone."""
        if self.whole:
            return [(0, self.conversation())] if self.replies else []
        return [(k, [*self.prompt(k), *self.completion(k)]) for k in range(len(self.replies))]


def turns_of(page: Mapping[str, Any], trajectory: Trajectory, template: Template) -> Turns:
    """The turns of an episode and its page (`rollouts.page`).

    Why messages are not whole prompts goes to the template's notes."""
    steps = trajectory.steps
    if any(step.prompt_images for step in steps):
        template.notes[NO_PICTURES] = None
    if steps and steps[0].prompt_text:
        return _alone(steps)
    problem = template.problem
    if template.markers is not None:
        found = _taken_apart(page["steps"], template.markers)
        if found is not None:
            return found if steps else _plain(trajectory)
        problem = "prompts are not in the form of the chat template"
    template.notes[f"messages hold observations and actions, not whole prompts and replies: {problem}"] = None
    return _plain(trajectory)


def _taken_apart(steps: Sequence[Mapping[str, Any]], markers: Markers) -> Turns | None:
    """The turns of a conversation, from its decoded texts."""
    if any(step["prompt"] is None or step["response"] is None for step in steps):
        return None
    opening = markers.first(steps[0]["prompt"]) if steps else []
    asked = [markers.later(step["prompt"]) for step in steps[1:]]
    if opening is None or None in asked:
        return None
    replies = tuple(markers.reply(step["response"]) for step in steps)
    return Turns(tuple(opening), tuple(text for text in asked if text is not None), replies)


def _alone(steps: Sequence[Step]) -> Turns:
    """The turns of steps whose prompts stand alone. As one conversation, later messages are observations."""
    alone = tuple(step.prompt_text for step in steps)
    seen = tuple(step.observation for step in steps[:-1])
    return Turns(
        (_message("user", alone[0]),), seen, tuple(s.response_text for s in steps), whole=False, alone=alone
    )


def _plain(trajectory: Trajectory) -> Turns:
    """The turns without a tokenizer: what the environment said, and the actions that were read in the replies."""
    steps = trajectory.steps
    opening = (_message("user", trajectory.first_observation),)
    return Turns(opening, tuple(s.observation for s in steps[:-1]), tuple(s.action for s in steps))


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
