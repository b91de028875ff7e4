"""Values of a run as other tools can read them: valid Unicode, finite numbers, JSON in ASCII."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlanything.core.types import Json


def clean(value: Any) -> Any:
    """The same value; lone surrogates become their escapes, as UTF-8 has none, and numbers that are not finite null."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean(name): clean(one) for name, one in value.items()}
    return [clean(one) for one in value] if isinstance(value, (list, tuple)) else value


def json_text(value: Json) -> str:
    """JSON on one line, in ASCII. No line of it ends early for a reader that splits at other ends of lines."""
    return json.dumps(clean(value), separators=(",", ":"), allow_nan=False)


def write_rows(path: Path, rows: Iterable[Json]) -> int:
    """Write one JSON object a line; how many. The rows are never in memory together. Raises `OSError`."""
    count = 0
    with path.open("w", encoding="ascii", newline="\n") as file:
        for row in rows:
            file.write(json_text(row) + "\n")
            count += 1
    return count
