"""What a rehearsal that was ended has made already. The same command keeps it, and makes the rest.

<root>/.rla/rehearsal.id     what was asked, from before the first folder is written until params.yaml is
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlanything.config import Config
from rlanything.core.errors import ConfigError
from rlanything.core.ids import content_id
from rlanything.files import atomic
from rlanything.files.project import PRIVATE
from rlanything.files.reader import read_text

MARK = Path(PRIVATE, "rehearsal.id")


class Unfinished:
    """The mark of one command in a project. Folders are written whole, so one that is there is finished."""

    def __init__(
        self,
        root: Path,
        config: Config,
        steps: int | None,
        kinds: Mapping[str, str],
        declared: Mapping[str, Any],
    ) -> None:
        self._mark = root / MARK
        sizes = {kind: declared.get(kind) for kind in kinds.values()}
        asked = {
            "config": config.model_dump(mode="json", by_alias=True),
            "kinds": dict(kinds),
            "sizes": sizes,
        }
        self._asked = content_id({**asked, "steps": steps})

    def require_free(self, what: str, place: Path) -> None:
        """Raise `ConfigError` where `place` exists, unless this very command was begun here and not finished."""
        begun = read_text(self._mark) if self._mark.is_file() else None
        if begun == self._asked or not place.exists():
            return
        other = (
            ". A rehearsal with other arguments was begun here and not finished: with the same ones it goes on, and "
            "keeps what it has made"
        )
        raise ConfigError(
            f"{what}: it exists, and is not overwritten; remove it first{other if begun else ''}"
        )

    def begin(self) -> None:
        """From now on, what is made is this command's own."""
        atomic.write_text(self._mark, self._asked)


def end(root: Path) -> None:
    """All is there: from now on it is refused, and not kept, by the command that made it."""
    (root / MARK).unlink(missing_ok=True)
