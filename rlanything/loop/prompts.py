"""The prompts of the three models, and how their replies are read.

Prompts are `string.Template` files in the folder `model.prompts`. Values are substituted once and never parsed again,
so that text from a model or an environment stays text. `model.context` decides which files are needed. Only the part of
a reply after its thought is read (`core.thoughts`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template

from rlanything.core.errors import ConfigError, unknown
from rlanything.core.images.messages import Message, Part
from rlanything.core.thoughts import after_thought

NAMES = {
    "chat": ("policy_system", "policy_turn", "judge_system", "judge", "critic", "critic_step", "adapter"),
    "history": ("policy_history", "policy_history_step", "judge_history", "critic", "critic_step", "adapter"),
}
"""The files of a prompt folder, by `model.context`."""
LABEL_NAMES = {
    "chat": {"judge_system": "label_system", "judge": "label"},
    "history": {"judge_history": "label_history"},
}
"""By `model.context`: a template of the judge -> the template that replaces it where the judge labels steps.

A folder has all of these files or none. Without them, a labelling judge gets the same questions as a reward model.
"""
UNREADABLE = "(unreadable)"
"""The action that the environment gets for a reply without an answer."""
BOXED = re.compile(r"\\boxed\{\s*([+-]?\d{1,9})\s*\}")
WORD = re.compile(r"\b(good|bad)\b")
PLACEHOLDERS = {
    "policy_system": frozenset[str](),
    "policy_turn": frozenset({"observation", "actions"}),
    "judge_system": frozenset[str](),
    "judge": frozenset({"observation", "action"}),
    "policy_history": frozenset({"opening", "history", "observation", "actions", "pictures"}),
    "policy_history_step": frozenset({"observation", "action"}),
    "judge_history": frozenset({"prompt", "response", "action", "observation", "before", "after"}),
    "label_system": frozenset[str](),
    "label": frozenset({"observation", "action"}),
    "label_history": frozenset({"prompt", "response", "action", "observation", "before", "after"}),
    "critic": frozenset({"task", "steps"}),
    "critic_step": frozenset({"task", "step", "reasons"}),
    "adapter": frozenset({"facts", "direction", "accuracy", "critic"}),
}
"""The placeholders that each template may use. `Prompts.load` refuses others."""
ABOUT = {
    "policy_turn": ("observation",),
    "judge": ("observation", "action"),
    "policy_history": ("observation", "pictures"),
    "policy_history_step": ("observation", "action"),
    "judge_history": ("observation", "action", "response", "before", "after"),
    "label": ("observation", "action"),
    "label_history": ("observation", "action", "response", "before", "after"),
    "critic": ("steps",),
    "critic_step": ("step",),
    "adapter": ("facts", "critic"),
}
"""What a template is about. `Prompts.load` refuses one that has none of these: all its questions would be the same."""

PICTURES = {
    "policy_history": ("policy", ("pictures",)),
    "judge_history": ("reward", ("before", "after")),
    "label_history": ("reward", ("before", "after")),
}
"""A template that shows pictures: the key of `model.images` that says how many, and where in the template."""
_PLACES = re.compile(r"\$\$|\$(pictures|before|after)\b|\$\{(pictures|before|after)\}")


@dataclass(frozen=True)
class Prompts:
    """The templates of one folder, the formats of actions and verdicts, and the context (`model.context`)."""

    templates: dict[str, Template]
    action_format: str
    verdict_format: str
    context: str = "chat"

    @classmethod
    def load(cls, folder: Path, action_format: str, verdict_format: str, context: str) -> Prompts:
        """Read the templates of a context.

        Raises `ConfigError` naming a missing file, an unknown placeholder, or one that a template cannot do without.
        """
        labels = tuple(LABEL_NAMES[context].values())
        labelled = any((folder / f"{name}.txt").is_file() for name in labels)
        templates = {}
        for name in (*NAMES[context], *(labels if labelled else ())):
            path = folder / f"{name}.txt"
            if not path.is_file():
                needed = (
                    f"a folder with one of {', '.join(labels)} (.txt) holds all of them"
                    if name in labels
                    else f"a prompt folder holds {', '.join(NAMES[context])} (.txt)"
                )
                raise ConfigError(
                    f"model.prompts: {path} is missing; with model.context = {context} {needed}"
                )
            templates[name] = _template(path, PLACEHOLDERS[name], ABOUT.get(name, ()))
        return cls(templates, action_format, verdict_format, context)

    @property
    def for_labels(self) -> Prompts:
        """The prompts for a judge that labels steps, with the templates for labels if the folder has them."""
        names = LABEL_NAMES[self.context].items()
        asked = {judge: self.templates[label] for judge, label in names if label in self.templates}
        return replace(self, templates={**self.templates, **asked})

    @property
    def chats(self) -> bool:
        """Whether an episode is a conversation that grows; otherwise every step has a prompt of its own."""
        return self.context == "chat"

    def fill(self, name: str, **values: str) -> str:
        """The template `name` with its values."""
        return self.templates[name].substitute(values)

    def require_places(self, images: Mapping[str, int]) -> None:
        """Raise `ConfigError` where a template has no place for the pictures that its model is to be shown.

        images: the section `model.images`.
        """
        for name, (role, places) in PICTURES.items():
            if not images[role] or name not in self.templates:
                continue
            found = {a or b for a, b in _PLACES.findall(self.templates[name].template)}
            missing = set(places[-images[role] :]) - found
            if missing:
                raise ConfigError(
                    f"model.images.{role} = {images[role]}: the template {name}.txt of model.prompts must say where "
                    f"pictures go; it lacks {', '.join(f'${place}' for place in sorted(missing))}"
                )

    def show(self, name: str, pictures: Mapping[str, Sequence[Part]], **values: str) -> str | list[Part]:
        """The template `name` with its values, and with pictures at their places; a text where there are none."""
        parts: list[Part] = []
        text, at = self.templates[name].template, 0
        for found in _PLACES.finditer(text):
            place = found[1] or found[2]
            if place is None:
                continue  # $$ stands for $
            parts.append({"type": "text", "text": Template(text[at : found.start()]).substitute(values)})
            parts += pictures.get(place, ())
            at = found.end()
        parts.append({"type": "text", "text": Template(text[at:]).substitute(values)})
        if any(pictures.values()):
            return [part for part in parts if part["type"] == "image" or part["text"]]
        return "".join(part["text"] for part in parts)

    def opening(self, observation: str, actions: Sequence[str]) -> list[Message]:
        """The messages of the policy's first prompt."""
        if not self.chats:
            return [self.history_turn((), observation, actions)]
        return [*self._system("policy_system"), self.turn(observation, actions)]

    def judge_opening(self, observation: str) -> list[Message]:
        """The messages that open the judge's conversation about a trajectory."""
        return [*self._system("judge_system"), {"role": "user", "content": observation}]

    def judge_question(
        self,
        observation: str,
        action: str,
        prompt: str = "",
        response: str = "",
        pictures: tuple[Sequence[Part], Sequence[Part]] = ((), ()),
    ) -> Message:
        """One user turn of the judge: the question about the step whose result is `observation`.

        Where the episode is no conversation, `prompt` is what the policy read and `response` its whole reply, and
        `pictures` are those seen before the step and those of its result.
        """
        if self.chats:
            return {"role": "user", "content": self.fill("judge", observation=observation, action=action)}
        shown = dict(zip(("before", "after"), pictures, strict=True))
        texts = {"prompt": prompt, "response": response, "action": action, "observation": observation}
        return {"role": "user", "content": self.show("judge_history", shown, **texts)}

    def test_question(self, opening: str) -> list[Message]:
        """The messages that ask the reward model for a unit test. `opening`: what the policy reads of the task."""
        system = self._system("judge_system") if self.chats else []
        return [*system, self.judge_question(opening, "")]

    def turn(self, observation: str, actions: Sequence[str]) -> Message:
        """One user turn of the policy's conversation: the observation, and the actions numbered from 1."""
        asked = self.fill("policy_turn", observation=observation, actions=_numbered(actions))
        return {"role": "user", "content": asked}

    def history_turn(
        self,
        past: Sequence[tuple[str, str]],
        observation: str,
        actions: Sequence[str],
        pictures: Sequence[Part] = (),
    ) -> Message:
        """The one user turn of a step: the earlier steps, the current observation and its actions.

        past: (observation, action) of the earlier steps, without the policy's reasoning. pictures: the latest ones.
        """
        lines = [
            self.fill("policy_history_step", observation=seen, action=done) + "\n" for seen, done in past
        ]
        texts = {
            "opening": past[0][0] if past else observation,
            "history": "".join(lines),
            "observation": observation,
            "actions": _numbered(actions),
        }
        return {"role": "user", "content": self.show("policy_history", {"pictures": pictures}, **texts)}

    def action(self, reply: str, actions: Sequence[str]) -> tuple[str, bool]:
        """(action, valid) read from the policy's reply. An unreadable reply is never a command."""
        text = after_thought(reply)
        if text is None:
            return UNREADABLE, False
        if self.action_format == "verbatim":
            action = text.strip()
            return action, not actions or action in actions
        found = BOXED.findall(text)
        index = int(found[-1]) if found else 0
        if 1 <= index <= len(actions):
            return actions[index - 1], True
        said = text.strip()[:200]
        # A reply in the wrong format can spell a command. The mark prevents its execution.
        spelled = said.casefold() in {action.casefold() for action in actions}
        return (f"{UNREADABLE} {said}" if spelled else said), False

    def reply(self, action: str, actions: Sequence[str]) -> str:
        """The shortest reply that `action` reads as this action. Raises `ValueError` for one that is not listed."""
        return action if self.action_format == "verbatim" else rf"\boxed{{{[*actions].index(action) + 1}}}"

    def verdict(self, reply: str) -> int | None:
        """+1, -1, or None when the reward model's reply holds no verdict. The last verdict counts."""
        text = after_thought(reply) or ""
        if self.verdict_format == "word":
            words = WORD.findall(text)
            return {"good": 1, "bad": -1}[words[-1]] if words else None
        found = BOXED.findall(text)
        return {1: 1, -1: -1}.get(int(found[-1])) if found else None

    def reasoning(self, reply: str) -> str:
        """The reply without its thought and its verdict. The critic uses it as the reason of a vote."""
        text = after_thought(reply) or ""
        pattern = WORD if self.verdict_format == "word" else BOXED
        return " ".join(pattern.sub("", text).split()).strip(" :.")

    def _system(self, name: str) -> list[Message]:
        text = self.fill(name)
        return [{"role": "system", "content": text}] if text else []


def parts_of(message: Message) -> list[Part]:
    """The parts of a message; a text is one part."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(message: Message) -> str:
    """What a message says, without its pictures."""
    return "".join(part["text"] for part in parts_of(message) if part["type"] == "text")


def _template(path: Path, allowed: frozenset[str], about: Sequence[str]) -> Template:
    """The template in a file. about: it must have one of these placeholders; () for one that needs none.

    Raises `ConfigError` for a file that is no text, a placeholder that is not allowed, and one that is missing.
    """
    try:
        template = Template(path.read_text("utf-8").rstrip("\n"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read (byte {error.start} is not UTF-8)") from None
    for found in template.pattern.finditer(template.template):
        name = found["named"] or found["braced"]
        if found["invalid"] is not None or (name and name not in allowed):
            line = template.template.count("\n", 0, found.start()) + 1
            raise ConfigError(f"{path}, line {line}: {_refused(name, allowed)}. For the sign itself write $$")
    if about and not {*about} & {*template.get_identifiers()}:
        raise ConfigError(
            f"{path}: has none of {', '.join(f'${name}' for name in about)}, so the model would not see what it is "
            f"asked about; allowed: {', '.join(f'${name}' for name in sorted(allowed))}"
        )
    return template


def _refused(name: str | None, allowed: Collection[str]) -> str:
    """Why a placeholder is refused, and what is allowed. name: None for a $ that begins none."""
    if not allowed:
        return f"{f'placeholder ${name}' if name else 'a $'} cannot be filled; this file takes none"
    if name:
        return f"placeholder ${name}: {unknown(name, allowed)}"
    return f"a $ that begins no placeholder; known: {', '.join(sorted(allowed))}"


def _numbered(actions: Sequence[str]) -> str:
    return "\n".join(f"{i}. {action}" for i, action in enumerate(actions, 1))
