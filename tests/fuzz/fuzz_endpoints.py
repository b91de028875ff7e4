"""What an endpoint sends, and the replies of it that a run has kept."""

from __future__ import annotations

import json
from pathlib import Path

from fuzz_target import Target

from rlanything.engines.openai import answers, text_ids
from rlanything.engines.openai.answers import Reply
from rlanything.engines.openai.kept import Kept
from rlanything.engines.openai.key import Key
from rlanything.engines.openai.usage import Usage

SECRET = "sk-0123456789abcdef"
KEY = Key(SECRET)
NAME = "ab" * 32
STATUSES = (200, 302, 400, 401, 413, 429, 500)


def _answer(data: bytes, _: Path) -> None:
    """The first byte chooses the status. Whatever is read can be stored, shown and counted, and holds no key."""
    status = STATUSES[data[0] % len(STATUSES)] if data else 200
    found = answers.read(status, {}, data[1:], None, KEY.masked)
    texts = [found.reason]
    if isinstance(found, Reply):
        texts += [found.text, found.model, found.build]
        assert text_ids.decode(text_ids.encode(found.text)) == found.text
        assert Usage.of(found).prompt_tokens >= 0
    for text in texts:
        assert SECRET not in text
        text.encode()


def _models(data: bytes, _: Path) -> None:
    found = answers.names(data, KEY.masked)
    for name in [found] if isinstance(found, str) else found:
        assert answers.shown(name).isascii()


def _kept(data: bytes, folder: Path) -> None:
    """A damaged file counts as absent: the reply is asked for again."""
    place = folder / NAME[:2] / f"{NAME}.json"
    place.parent.mkdir()
    place.write_bytes(data)
    found = Kept(folder).get(NAME)
    assert found is None or isinstance(Usage.of(found), Usage)


def _said(text: str, **more: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 12, "completion_tokens": 3}
    return json.dumps({"model": "small", "choices": [choice], "usage": usage, **more}).encode()


ANSWERS = [
    b"\x00" + _said("good \\boxed{1}", system_fingerprint="fp_1"),
    b"\x00" + _said(f"your key is {SECRET}"),
    b"\x02" + b'{"error": {"message": "This model\'s maximum context length is 8 tokens", "code": "x"}}',
    b"\x05" + b'{"error": {"message": "slow down", "code": "insufficient_quota"}}',
    b"\x06" + f'{{"error": "broken by {SECRET}"}}'.encode(),
]
MODELS = [b'{"object": "list", "data": [{"id": "small"}, {"id": "large"}]}']
REPLIES = [
    b'{"text": "good", "finished": true, "reason": "", "model": "small", "build": "", "prompt_tokens": 12, '
    b'"reply_tokens": null}'
]
WORDS = (SECRET.encode(), b"\\ud800", b"1e999", b'"content": null', b'"choices": []', b"\xff", b"[" * 300)
TARGETS = [
    Target("endpoint-answer", _answer, lambda: ANSWERS, words=WORDS),
    Target("endpoint-models", _models, lambda: MODELS, "json", WORDS),
    Target("endpoint-kept-reply", _kept, lambda: REPLIES, "json", WORDS),
]
