"""What a chat template writes around the messages of a conversation, so that a decoded prompt can be taken apart
again.

A template is a program of a checkpoint, which may be anybody's. It is rendered once for a run, for a conversation of
made-up words, in the child process with limits that also reads the tokenizer. Texts of a run never reach it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rlanything.core.thoughts import OPENING
from rlanything.rollouts.decoding import in_child, tokenizer_file
from rlanything.rollouts.runs import NamedRun

_SYSTEM, _USER, _REPLY, _NEXT = "7319system", "7319user", "7319reply", "7319next"
Message = dict[str, str]


@dataclass(frozen=True)
class Markers:
    """opening: before the user's first message without a system message. system: before and after a system message;
    None where the template takes none. between: from the end of a reply to the next message. closing: from the last
    message to the reply. ends: texts that end a reply, the end of turn first."""

    opening: str
    system: tuple[str, str] | None
    between: str
    closing: str
    ends: tuple[str, ...]

    @property
    def thought(self) -> str:
        """The tag of a thought where the template opens one for every reply; the reply lacks it."""
        return OPENING if self.closing.rstrip().endswith(OPENING) else ""

    def first(self, prompt: str) -> list[Message] | None:
        """The messages of the first prompt of a conversation; None where it does not have this form."""
        if not prompt.endswith(self.closing):
            return None
        body = prompt[: len(prompt) - len(self.closing)]
        if body.startswith(self.opening):
            return [{"role": "user", "content": body[len(self.opening) :]}]
        if self.system is None or not body.startswith(self.system[0]):
            return None
        said, found, asked = body[len(self.system[0]) :].partition(self.system[1])
        return [{"role": "system", "content": said}, {"role": "user", "content": asked}] if found else None

    def later(self, added: str) -> str | None:
        """The message that a later prompt adds. An end of turn comes first where the reply was cut off."""
        for end in ("", *self.ends):
            head = end + self.between
            if added.startswith(head) and added.endswith(self.closing):
                body = added[len(head) :]
                return body[: len(body) - len(self.closing)]
        return None

    def reply(self, text: str) -> str:
        """The content of a reply: without the mark that ends it, with the tag of its thought."""
        for end in self.ends:
            if end and text.endswith(end):
                text = text[: -len(end)]
                break
        return self.thought + text


@dataclass
class Template:
    """The markers of a run's policy, or why there are none."""

    markers: Markers | None = None
    problem: str = ""
    notes: dict[str, None] = field(default_factory=dict)


def template_of(run: NamedRun) -> Template:
    """The markers of the policy's chat template, or why its prompts cannot be taken apart."""
    file = tokenizer_file(run, "policy")
    if file is None:
        return Template(problem="no tokenizer of the policy here")
    # Loaded before the fork, so that the child does not spend its seconds on it.
    from rlanything.engines import chat  # noqa: F401

    found = in_child(lambda: _render(file.parent))
    if isinstance(found, str):
        return Template(problem=f"{file.parent}: the chat template cannot be used: {found}")
    return Template(_markers(*found))


def _render(folder: Path) -> list[str]:
    """Four conversations as text, and the texts that end a reply."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)

    def text(*messages: Message, ask: bool = True) -> str:
        made = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=ask)
        assert isinstance(made, str)
        return made

    system = {"role": "system", "content": _SYSTEM}
    user, after = {"role": "user", "content": _USER}, {"role": "user", "content": _NEXT}
    reply = {"role": "assistant", "content": _REPLY}
    try:
        told = text(system, user)
    except Exception:  # a template may refuse a system message in any way
        told = ""
    tail = text(user, reply, ask=False).partition(_REPLY)[2].lstrip()
    end = tokenizer.decode(tokenizer.encode(tail, add_special_tokens=False)[:1], skip_special_tokens=False)
    return [text(user), told, text(user, reply, after), str(end), str(tokenizer.eos_token or "")]


def _markers(asked: str, told: str, turned: str, end: str, eos: str) -> Markers:
    """The markers in rendered conversations."""
    opening, _, closing = asked.partition(_USER)
    before, found, rest = told.partition(_SYSTEM)
    system = (before, rest.partition(_USER)[0]) if found and rest.partition(_USER)[0] else None
    between = turned.partition(_REPLY)[2].partition(_NEXT)[0].lstrip()
    return Markers(opening, system, between.removeprefix(end), closing, tuple(dict.fromkeys((end, eos))))
