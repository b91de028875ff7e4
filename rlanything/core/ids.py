"""Content identity: canonical JSON and sha256, the same on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces, UTF-8 kept.

    UTF-8 has no lone surrogates. One in a model's reply is written as its JSON escape, and read back as itself. The two
    halves of a pair are written as its character, because that is what a reader makes of their escapes.
    Raises `ValueError` for NaN, `TypeError` for a value that JSON cannot hold.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        return whole.encode("utf-8", "backslashreplace").decode()
    return text


def content_id(value: Any) -> str:
    """sha256 of the canonical JSON, as 64 hex digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
