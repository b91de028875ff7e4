"""What a target is, and when an input counts as badly treated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzz_mutations import READ, damaged, rewritten
from hypothesis import strategies as st

from rlanything.core.errors import RLAnythingError

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
"""<target>/<name>: inputs that were badly treated once."""
_MEMORY = Path("/dev/shm")


class BadError(AssertionError):
    """An input was refused with a message that does not name its file."""


@dataclass(frozen=True)
class Target:
    """A reader of something that may be anybody's.

    read: gets an input and an empty folder. It returns anything, or raises an `RLAnythingError`.
    seeds: valid inputs, made when they are first needed.
    form: `json`, `lines` or `yaml` where the inputs are trees of values; '' for other texts and bytes.
    words: what inputs of this kind are made of.
    file: what a message must name; '' where there is no file.
    examples: how many a short search tries.
    """

    name: str
    read: Callable[[bytes, Path], object]
    seeds: Callable[[], Sequence[bytes]]
    form: str = ""
    words: Sequence[bytes] = ()
    file: str = ""
    examples: int = 30

    @cached_property
    def valid(self) -> list[bytes]:
        """The seeds."""
        return list(self.seeds())

    @property
    def inputs(self) -> st.SearchStrategy[bytes]:
        """Damaged seeds; an example shrinks to a seed with one change."""

        @st.composite
        def inputs(draw: st.DrawFn) -> bytes:
            data = draw(st.sampled_from(self.valid))
            if self.form in READ and draw(st.integers(0, 2)):
                return rewritten(draw, data, self.form)
            return damaged(draw, data, tuple(self.words))

        return inputs()

    def attempt(self, data: bytes) -> str:
        """The message with which an input is refused; '' when it is read.

        Any other exception than the project's leaves this function, and so does `BadError`.
        """
        with TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
            try:
                self.read(data, Path(folder))
            except RLAnythingError as error:
                said = str(error)
                if self.file and self.file not in said:
                    raise BadError(f"the message does not name {self.file}: {said[:300]}") from error
                return said or type(error).__name__
        return ""

    def corpus(self) -> list[Path]:
        """The inputs that were badly treated once."""
        return sorted((CORPUS / self.name).glob("*"))


def file_of(name: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], Any]:
    """`Target.read` of a reader of files: the input is written as a file of that name."""

    def written(data: bytes, folder: Path) -> Any:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return read(path)

    return written


def text_of(read: Callable[[str], Any]) -> Callable[[bytes, Path], Any]:
    """`Target.read` of a reader of texts. Bytes that are no UTF-8 are what a tokenizer makes of them."""

    def decoded(data: bytes, folder: Path) -> Any:
        return read(data.decode("utf-8", "replace"))

    return decoded
