"""Replies that were paid for, kept in a folder, so that an iteration that is killed and repeated does not pay twice.

A reply is kept under the hash of its request, which holds the seed. An endpoint does not promise the same reply to the
same request. With the kept replies, a repeated iteration ends with the bytes that it would have ended with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from typing_extensions import TypedDict

from rlanything.core.ids import content_id
from rlanything.core.records.forms import Count, Form, Text
from rlanything.core.types import Json
from rlanything.engines.openai.answers import Reply
from rlanything.files import reader
from rlanything.files.records import write_json


class _Kept(TypedDict):
    text: Text
    finished: bool
    reason: Text
    model: Text
    build: Text
    prompt_tokens: Count | None
    reply_tokens: Count | None


_FORM = Form(_Kept)


def request_id(address: str, body: Mapping[str, Json]) -> str:
    """The name of a request: 64 hex digits. The same request to another address has another name."""
    return content_id({"address": address, "body": body})


class Kept:
    """Replies in a folder, one file each. None in the place of the folder: nothing is kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, request: str) -> Reply | None:
        """The reply to a request; None where there is none, or its file is damaged."""
        path = self._place(request)
        if path is None or not path.exists():
            return None
        try:
            data = reader.read_object(path)
            _FORM.check(data)
        except ValueError:
            return None
        return Reply(**{field.name: data[field.name] for field in fields(Reply)})

    def put(self, request: str, reply: Reply) -> None:
        """Keep a reply. Its file appears with one rename. Raises `OSError` naming the file."""
        path = self._place(request)
        if path is not None:
            write_json(path, asdict(reply))

    def _place(self, request: str) -> Path | None:
        return None if self._folder is None else self._folder / request[:2] / f"{request}.json"
