"""Writing the report's files: each appears whole or not at all, whatever kills the process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write(path: Path, data: str | bytes) -> None:
    """Replace `path` by `data` in one step (text as UTF-8 with plain newlines); folders are made as needed.

    An existing file is never opened for writing: it may be a link into DVC's cache.
    """
    raw = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
        os.chmod(temporary, 0o644)  # mkstemp's 0600 would leave a report that only its author can read
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
