"""Notes on a run, as a page exports them: read from a file that may be anybody's, to be built into another page.

The page's script (`page/notes.js`) has the same format and the same limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from rlanything.core.errors import ConfigError
from rlanything.core.records.forms import Form, Text
from rlanything.core.types import Json
from rlanything.files.reader import FileError, parse, read_bytes

MOST_MB = 16
MOST = 5_000
LONGEST = 10_000
"""Of a file in megabytes, of its notes, and of the text of a note in characters."""
_Place = Annotated[int, Field(ge=0, le=999_999_999)]


class NoteForm(TypedDict):
    """A note on a rollout, or with `step` on a step of it. rewrite: 1 for a rewrite that was tried, otherwise 0."""

    iteration: _Place
    slot: _Place
    rewrite: Annotated[int, Field(ge=0, le=1)]
    rollout: _Place
    step: _Place | None
    text: Annotated[Text, Field(min_length=1, max_length=LONGEST)]


class NotesForm(TypedDict):
    """A file of notes. identity: of the run, see `facts.identity`."""

    format: Literal["rlanything view notes 1"]
    run: Text
    identity: Text
    notes: Annotated[list[NoteForm], Field(max_length=MOST)]


def read_notes(path: Path, about: Mapping[str, Json]) -> list[dict[str, Any]]:
    """The notes in a file on the run that `about` (`facts.facts`) describes.

    Raises `ConfigError` for a file that is too large or has another form, and for notes on another run."""
    try:
        found: Any = parse(read_bytes(path, MOST_MB))
        Form(NotesForm).check(found)
    except FileError as error:
        raise ConfigError(f"--notes {path}: {str(error).removeprefix(f'{path}: ')}") from None
    except ValueError as error:
        raise ConfigError(f"--notes {path}: not notes that a page exported: {error}") from None
    if found["identity"] != about["identity"]:
        raise ConfigError(
            f"--notes {path}: notes on another run ({found['run'][:80]!r}), not on {about['run']}"
        )
    return [{name: note[name] for name in NoteForm.__annotations__} for note in found["notes"]]
