"""Reads what an endpoint sent. What cannot be used is a value that says why, and whether another attempt may help.

status, body -> Reply       a text, or a reply without one (`reason` says why): the model's own failure
             -> Fault       another attempt may help: the server is busy, broken, or cut the answer off
             -> Refused     no attempt can help: a wrong key, address or model, or a request it does not accept
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlanything.core.printable import SURROGATE
from rlanything.core.types import Json
from rlanything.files import reader

MOST_CONTAINERS = 100_000
"""Lists and objects in an answer. They take far more memory than their text."""
MOST_TOKENS = 1 << 40
SHOWN = 200
"""Characters of a server's message that are shown."""
BUSY = frozenset({408, 409, 425, 429})
"""Statuses after which another attempt may help, besides all from 500 on."""
OWN_FAULT = frozenset(
    {"context_length_exceeded", "content_filter", "content_policy_violation", "string_above_max_length"}
)
"""Codes of an error that one request has by itself. Other requests may succeed."""
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of a 429 that waiting does not change."""
_SIZE = r"context (length|size|window)"
TOO_LONG = re.compile(rf"{_SIZE}|prompt is too long|maximum.{{0,40}}tokens", re.IGNORECASE)
"""In the words of a server with status 400. llama.cpp's are of the context's size."""
FULL = re.compile(rf"{_SIZE}\b.{{0,20}}\bexceed|\bexceed.{{0,40}}\b{_SIZE}", re.IGNORECASE)
"""In the words of a server with status 500. llama.cpp has them where the slots that share a context have filled it."""
OF_PICTURES = re.compile(
    r"\b(images?|image_url|pictures?|vision|multi-?modal)\b|content must be a string", re.IGNORECASE
)
"""In the words of a server that refuses a request because of its pictures."""
UNSUPPORTED = re.compile(
    r"not support|unsupported|n't support|no endpoints found that support", re.IGNORECASE
)
"""Must be in those words too, where the status alone says something else."""
NOT_OF_PICTURES = frozenset({401, 402, 403}) | BUSY
"""Statuses that are about the key, the money or the load, whatever the words are."""
BROKEN_OFF = frozenset({"error", "abort"})
"""What a server calls the end of a reply that it did not finish: OpenRouter an error, and vLLM one that is stopped."""
Mask = Callable[[str], str]
"""Replaces the key in a text: a server may repeat what it was sent."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer to keep. text: the model's words. finished: False when they were cut off at the longest reply.

    reason: why there is no text, '' where there is one. model, build: what the server calls the model, and its
    `system_fingerprint`. prompt_tokens, reply_tokens: by the server's count; None: it did not say.
    """

    text: str
    finished: bool
    reason: str = ""
    model: str = ""
    build: str = ""
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """An attempt that failed, and another may succeed.

    retry_after: seconds that the server asks to wait. final: what the reply is, if every attempt fails like this;
    None: then the endpoint is out of order, and the run ends.
    """

    reason: str
    retry_after: float | None = None
    final: Reply | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """No attempt can succeed. status: of HTTP; 0: none. of_pictures: it is about those of the request.

    With status 413 they make the request too long; with any other one the model reads none, or not so many.
    """

    reason: str
    status: int = 0
    of_pictures: bool = False


def shown(text: str) -> str:
    """A server's words for a message: short, on one line, only visible ASCII characters."""
    return ascii(" ".join(text[: 10 * SHOWN].split())[:SHOWN])[1:-1]


def read(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    wait: float | None,
    mask: Mask,
    *,
    shows: bool = False,
) -> Reply | Fault | Refused:
    """What an answer to a chat request holds. wait: the seconds of its Retry-After. shows: it had pictures."""
    if status == 200:
        return _reply(headers, body, mask)
    if 300 <= status < 400:
        place = shown(mask(headers.get("Location", "?")))
        return Refused(f"it redirects to {place}, and redirects are not followed", status)
    message, code = _error(body, mask)
    said = f"{status}{f': {message}' if message else ''}"
    if status == 413 and shows:  # the server's limit may be raised, so no reply of this is kept
        return Refused(said, status, of_pictures=True)
    if status == 413 or code in OWN_FAULT or (status == 400 and TOO_LONG.search(message)):
        return _refused(said)
    if shows and _of_pictures(status, message):
        return Refused(said, status, of_pictures=True)
    if status == 429 and code in SPENT:
        return Refused(said, status)
    # Another request may have filled the context: llama.cpp then ends all of them at once.
    if status == 500 and FULL.search(message):
        return Fault(said, wait, final=_refused(said))
    if status in BUSY or status >= 500:
        return Fault(said, wait)
    return Refused(said, status)


def _refused(said: str) -> Reply:
    """The reply to a request that the server does not take. said: its status and words."""
    return Reply("", False, f"the endpoint refused the request ({said})")


def _of_pictures(status: int, message: str) -> bool:
    """Whether a server refuses pictures. Some say so with status 404 (OpenRouter) or 500 (llama.cpp).

    A 404 may also name a model that is not there, and a 500 a fault that passes.
    """
    if status in NOT_OF_PICTURES or not OF_PICTURES.search(message):
        return False
    return (status < 500 and status != 404) or bool(UNSUPPORTED.search(message))


def names(body: bytes, mask: Mask) -> list[str] | str:
    """The names of the models in an answer of /models; a text where it cannot be read."""
    data = _json(body, mask)
    listed = data.get("data") if isinstance(data, dict) else None
    if not isinstance(listed, list):
        return data if isinstance(data, str) else "it holds no list `data`"
    found = [item.get("id") for item in listed if isinstance(item, dict)]
    return [name for name in found if isinstance(name, str)]


def _reply(headers: Mapping[str, str], body: bytes, mask: Mask) -> Reply | Fault:
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        return _unreadable("its content is compressed, which was not asked for")
    data = _json(body, mask)
    if not isinstance(data, dict):
        return _unreadable(data if isinstance(data, str) else "no JSON object")
    if data.get("error"):
        return Fault(f"an error with status 200: {shown(_message(data)[0])}")
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return _unreadable("it holds no choices[0].message")
    end = choice.get("finish_reason")
    if choice.get("error") or (isinstance(end, str) and end in BROKEN_OFF):
        return Fault(f"an error in the reply: {shown(_message(choice)[0] or str(end))}")
    return _said(data, choice, message)


def _said(data: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> Reply | Fault:
    """The reply in a well-formed answer."""
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    assert isinstance(usage, dict)
    content, end = message.get("content"), choice.get("finish_reason")
    if content is not None and not isinstance(content, str):
        return _unreadable("choices[0].message.content is no text")
    reason = "" if content else f"the reply has no text (finish_reason {shown(str(end))})"
    if end == "content_filter":
        content, reason = "", "the endpoint filtered the reply"
    return Reply(
        SURROGATE.sub("\ufffd", content or ""),
        not reason and end != "length",
        reason,
        _name(data.get("model")),
        _name(data.get("system_fingerprint")),
        _count(usage.get("prompt_tokens")),
        _count(usage.get("completion_tokens")),
    )


def _unreadable(reason: str) -> Fault:
    """An answer of another form. If every attempt gets one, the reply is invalid, and the run goes on."""
    return Fault(f"unreadable answer: {reason}", final=Reply("", False, f"unreadable answer: {reason}"))


def _json(body: bytes, mask: Mask) -> Json | str:
    """The JSON value of a body, its texts masked, unless it is a text; otherwise a text that says what is wrong."""
    if body.count(b"[") + body.count(b"{") > MOST_CONTAINERS:
        return f"more than {MOST_CONTAINERS:,} lists and objects"
    try:
        value = reader.parse(body)
    except reader.FileError as error:
        return shown(str(error))
    return "no JSON object" if isinstance(value, str) else _masked(value, mask)


def _masked(value: Json, mask: Mask) -> Json:
    """The value with every text masked. Its depth is bounded by the reader."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, list):
        return [_masked(item, mask) for item in value]
    if isinstance(value, dict):
        return {key: _masked(item, mask) for key, item in value.items()}
    return value


def _error(body: bytes, mask: Mask) -> tuple[str, str]:
    """(message, code) of an error's body; ('', '') where it has none."""
    data = _json(body, mask)
    message, code = _message(data) if isinstance(data, dict) else ("", "")
    return shown(message), code


def _message(data: dict[str, Any]) -> tuple[str, str]:
    error = data.get("error", data)
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return "", ""
    message, code = error.get("message"), error.get("code")
    return (message if isinstance(message, str) else ""), (code if isinstance(code, str) else "")


def _count(value: Json) -> int | None:
    """A number of tokens; None for anything else."""
    return (
        value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS else None
    )


def _name(value: Json) -> str:
    return shown(value) if isinstance(value, str) else ""
