"""Pictures in requests: by name where a reply is looked up and kept, as bytes only in what is sent.

A name is the sha256 of a picture's bytes. So the name of a request covers its pictures, and what is stored holds none.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rlanything.core.errors import ConfigError
from rlanything.core.images import Image
from rlanything.core.types import Json

Find = Callable[[str], Image]
"""The picture of a name. Raises `FileError` where it cannot be read."""
KEPT = 8
"""Pictures whose text is kept: the votes on a step show the same ones."""
_NAME = "sha256:"
_DATA = "data:image/png;base64,"
MB = 1 << 20


def named(messages: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Messages of `text_ids` as a request has them, with the names of pictures in the place of their bytes."""
    return [{**message, "content": _parts(message["content"])} for message in messages]


def names_in(body: Mapping[str, Any]) -> list[str]:
    """The names of the pictures of a request, in its order."""
    return [
        _name(part)
        for message in body["messages"]
        if not isinstance(message["content"], str)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


class Pictures:
    """Puts the bytes of pictures into requests. role: for messages. most_mb: the longest request, MB.

    find: gives the pictures; None: there are none to show.
    """

    def __init__(self, role: str, most_mb: int, find: Find | None) -> None:
        self._role, self._most_mb, self._find = role, most_mb, find
        self._url = lru_cache(maxsize=KEPT)(self._encoded)

    def check(self, bodies: Sequence[Mapping[str, Any]]) -> None:
        """To be called before anything is asked.

        Raises `ConfigError` for a request that is too long, `FileError` for a picture that cannot be read, and
        `ValueError` for pictures without a store.
        """
        names = {name for body in bodies for name in names_in(body)}
        # A size needs no encoded picture: encoding the whole batch here would be done again for what is sent.
        more = {name: self._length(name) - len(_NAME + name) for name in sorted(names)}
        for body in bodies:
            seen = names_in(body)
            size = len(plain(body)) + sum(more[name] for name in seen)
            if size > self._most_mb * MB:
                raise ConfigError(
                    f"endpoints.{self._role}.max_request_mb = {self._most_mb}: a request has {size / MB:.1f} MB, with "
                    f"{len(seen)} pictures. Allow more, if the endpoint does, or show fewer or smaller pictures "
                    "(model.images.reward, the screen of the environment)"
                )

    def data(self, body: Mapping[str, Any]) -> bytes:
        """What is sent for a request. Raises as `check`. Reading and encoding take long; threads may call it."""
        return plain({**body, "messages": [self._filled(message) for message in body["messages"]]})

    def _filled(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if isinstance(message["content"], str):
            return message
        return {
            **message,
            "content": [
                _image(self._url(_name(part))) if part["type"] == "image_url" else part
                for part in message["content"]
            ],
        }

    def _encoded(self, name: str) -> str:
        return _DATA + base64.b64encode(self._png(name)).decode()

    def _length(self, name: str) -> int:
        """Characters of what `_encoded` returns: base64 has four for three bytes, rounded up."""
        return len(_DATA) + 4 * math.ceil(len(self._png(name)) / 3)

    def _png(self, name: str) -> bytes:
        if self._find is None:
            raise ValueError("this endpoint is sent text alone; it cannot be shown pictures")
        return self._find(name).png


def _parts(content: str | Sequence[Mapping[str, Any]]) -> Json:
    if isinstance(content, str):
        return content
    return [_image(_NAME + part["image"]) if part["type"] == "image" else dict(part) for part in content]


def _name(part: Mapping[str, Any]) -> str:
    """The name of the picture that a part of a request has in the place of its bytes."""
    url: str = part["image_url"]["url"]
    return url.removeprefix(_NAME)


def _image(url: str) -> dict[str, Json]:
    return {"type": "image_url", "image_url": {"url": url}}


def plain(body: Mapping[str, Any]) -> bytes:
    """A request as JSON, as it stands."""
    return json.dumps(body, ensure_ascii=True).encode()
