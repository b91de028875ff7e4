"""The prompts of the three models, and how their replies are read.

Prompts are `string.Template` files in the folder `model.prompts`. Values are substituted once and never parsed again,
so that text from a model or an environment stays text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from rlanything.core.errors import ConfigError

NAMES = ("policy_system", "policy_turn", "judge_system", "judge", "critic", "adapter")
BOXED = re.compile(r"\\boxed\{\s*([+-]?\d{1,9})\s*\}")
WORD = re.compile(r"\b(good|bad)\b")
PLACEHOLDERS = {
    "policy_system": frozenset[str](),
    "policy_turn": frozenset({"observation", "actions"}),
    "judge_system": frozenset[str](),
    "judge": frozenset({"observation", "action"}),
    "critic": frozenset({"task", "steps"}),
    "adapter": frozenset({"facts", "direction", "accuracy", "critic"}),
}
"""The placeholders that each template may use. Others are refused at start."""

Message = dict[str, str]


@dataclass(frozen=True)
class Prompts:
    """The templates of one folder, and the formats of actions and verdicts."""

    templates: dict[str, Template]
    action_format: str
    verdict_format: str

    @classmethod
    def load(cls, folder: Path, action_format: str, verdict_format: str) -> Prompts:
        """Read every template. Raises `ConfigError` naming a missing file or an unknown placeholder."""
        templates = {}
        for name in NAMES:
            path = folder / f"{name}.txt"
            if not path.is_file():
                raise ConfigError(
                    f"model.prompts: {path} is missing; a prompt folder holds {', '.join(NAMES)} (.txt)"
                )
            template = Template(path.read_text().rstrip("\n"))
            strange = set(template.get_identifiers()) - PLACEHOLDERS[name]
            if strange or not template.is_valid():
                allowed = ", ".join(f"${p}" for p in sorted(PLACEHOLDERS[name])) or "none"
                raise ConfigError(
                    f"{path}: placeholders {sorted(strange)} cannot be filled; allowed: {allowed}"
                )
            templates[name] = template
        return cls(templates, action_format, verdict_format)

    def fill(self, name: str, **values: str) -> str:
        """The template `name` with its values."""
        return self.templates[name].substitute(values)

    def opening(self, observation: str, actions: Sequence[str]) -> list[Message]:
        """The messages that open a conversation of the policy."""
        return [*self._system("policy_system"), self.turn(observation, actions)]

    def judge_opening(self, observation: str) -> list[Message]:
        """The messages that open the judge's conversation about a trajectory."""
        return [*self._system("judge_system"), {"role": "user", "content": observation}]

    def test_question(self, opening: str) -> list[Message]:
        """The messages that ask the reward model for a unit test. `opening`: what the policy reads of the task."""
        question = self.fill("judge", observation=opening, action="")
        return [*self._system("judge_system"), {"role": "user", "content": question}]

    def turn(self, observation: str, actions: Sequence[str]) -> Message:
        """One user turn of the policy's conversation: the observation, and the actions numbered from 1."""
        listed = "\n".join(f"{i}. {action}" for i, action in enumerate(actions, 1))
        return {"role": "user", "content": self.fill("policy_turn", observation=observation, actions=listed)}

    def action(self, text: str, actions: Sequence[str]) -> tuple[str, bool]:
        """(action, valid) read from the policy's reply. An unreadable reply is never a command."""
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
        return (f"(unreadable) {said}" if spelled else said), False

    def reply(self, action: str, actions: Sequence[str]) -> str:
        """The shortest reply that `action` reads as this action. Raises `ValueError` for one that is not listed."""
        return action if self.action_format == "verbatim" else rf"\boxed{{{[*actions].index(action) + 1}}}"

    def verdict(self, text: str) -> int | None:
        """+1, -1, or None when the reward model's reply holds no verdict. The last one counts."""
        if self.verdict_format == "word":
            words = WORD.findall(text)
            return {"good": 1, "bad": -1}[words[-1]] if words else None
        found = BOXED.findall(text)
        return {1: 1, -1: -1}.get(int(found[-1])) if found else None

    def reasoning(self, text: str) -> str:
        """The reply without its verdict. The critic is made from it."""
        pattern = WORD if self.verdict_format == "word" else BOXED
        return " ".join(pattern.sub("", text).split()).strip(" :.")

    def _system(self, name: str) -> list[Message]:
        text = self.fill(name)
        return [{"role": "system", "content": text}] if text else []
