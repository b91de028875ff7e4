"""What an adapter may change of a task: its evaluator, and how much its instruction helps (paper, C.7).

It answers with a JSON object with one key, the name of an evaluator, whose value is the instruction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from envs import wording
from rlanything.core.types import InvalidProposal

LONGEST_REPLY = 20_000
"""Characters of a reply that are read, from its end."""
TRIES = 50
"""Places in a reply at which its JSON object may begin."""
LONGEST = 1200
"""Characters of an instruction."""
GROWTH = 4
"""An instruction is at most so many times as long as its template, where that is more than `ROOM` characters."""
ROOM = 400
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”")
_FIXED = re.compile(r"[\w.:/~\\$%#-]*[\d/\\:][\w.:/~\\$%#-]*\w|\w+\.\w{2,5}\b|[\w.:/~\\$%#-]*\d")
"""Numbers, cells, paths, addresses, names of files: what the evaluator looks for."""
_MARKS = re.compile(r"<\|[^|]*\|>|</?(?:think|tool_call|tool_response)>")


def read(reply: str, known: Mapping[str, str]) -> tuple[str, str]:
    """(evaluator, instruction) of a reply, which is untrusted. known: evaluator name -> canonical instruction.

    Raises `InvalidProposal` with the reason.
    """
    found = _last_object(reply[-LONGEST_REPLY:])
    if len(found) != 1:
        raise InvalidProposal("the JSON object must have one key, the name of an evaluator")
    [(key, text)] = found.items()
    if key not in known:
        raise InvalidProposal(f"the key must be one of {', '.join(map(repr, known))}")
    if not isinstance(text, str):
        raise InvalidProposal("the value must be a text: the instruction")
    text = " ".join(text.split())
    for reason in objections(text, known[key]):
        raise InvalidProposal(reason)
    return key, text


def objections(text: str, template: str) -> Iterator[str]:
    """What is wrong with an instruction for the evaluator whose canonical instruction is `template`, if anything."""
    if not text:
        yield "the instruction is empty"
    if len(text) > min(LONGEST, max(ROOM, GROWTH * len(template))) and len(text) > len(template):
        yield "the instruction is too long"
    if not text.isprintable():
        yield "the instruction has signs that cannot be printed"
    if _MARKS.search(text):
        yield "the instruction has marks of a chat format"
    if word := wording.forbids(text, template):
        yield f"the instruction forbids something ({word!r}), which its template does not; it says what to do"
    if wording.in_another_language(text, template):
        yield "the instruction is in another language than its template"
    missing = [part for part in fixed_parts(template) if not _has(text, part, _times(template, part))]
    if missing:
        yield f"the instruction leaves out {missing[0]!r}, which its evaluator looks for"


def fixed_parts(template: str) -> list[str]:
    """What every instruction for an evaluator must contain: quoted texts, numbers, cells and files of its template."""
    quoted = [first or second for first, second in _QUOTED.findall(template)]
    return [*quoted, *_FIXED.findall(template)]


def _has(text: str, part: str, times: int = 1) -> bool:
    """Whether a text has a part so often as a whole word: 112, 12.5 and -12 have no 12, and A33 has no A3.

    Capitals count: to an evaluator, a file Notes.txt is not notes.txt.
    """
    sign = "(?<!-)" if part[:1].isdecimal() else ""
    pattern = rf"(?<!\w)(?<!\d\.){sign}{re.escape(part)}(?!\w)(?!\.\d)"
    return len(re.findall(pattern, text)) >= times


def _times(template: str, part: str) -> int:
    """How often an instruction must have a part: a number as often as its template, since it may be added twice."""
    return _FIXED.findall(template).count(part) if part.isdecimal() else 1


def reply(key: str, instruction: str) -> str:
    """The reply that asks for this."""
    return json.dumps({key: instruction}, ensure_ascii=False)


def _last_object(text: str) -> dict[str, object]:
    """The last JSON object in a text."""
    decoder, end = json.JSONDecoder(), len(text)
    found: dict[str, object] | None = None
    for _ in range(TRIES):
        end = text.rfind("{", 0, end)
        if end < 0:
            break
        try:
            value, _stop = decoder.raw_decode(text, end)
        except (ValueError, RecursionError):
            continue
        found = value
        break
    if not isinstance(found, dict):
        raise InvalidProposal('no JSON object such as {"evaluator1": "Close all windows."}')
    return found
