"""Sets of problems in files: which are there, and tasks from them."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from envs.coding.formats.codecontests import DIFFICULTIES
from envs.coding.formats.files import DIFFICULTY, FORMATS, load
from envs.settings import files, one_of, whole
from rlanything.core.seeds import derive_seed
from rlanything.core.types import Task

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProblemSets:
    """files: name of a set, which is a split -> its file. form: their format. skip: leave out records that cannot be
    read. hardest: the largest number of difficulty; None: any."""

    files: Mapping[str, str]
    form: str
    skip: bool
    hardest: int | None

    def check(self, splits: Collection[str]) -> None:
        """Raise `ValueError` unless the files of these splits are there."""
        for split in self.files:
            if split in splits:
                self._file(split)

    def draw(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` problems of a set, in an order that depends on the seed. Raises `ValueError` where it has fewer."""
        path = self._file(split)
        found, refused = load(path, self.form, skip=self.skip)
        for reason in refused:
            _LOG.warning("left out: %s", reason)
        if self.hardest is not None:
            found = [problem for problem in found if DIFFICULTY[self.form](problem) <= self.hardest]
        if len(found) < count:
            raise ValueError(
                f"problems.{split}: {count} are wanted and {path} holds {len(found)} that can be used"
            )
        chosen = random.Random(derive_seed(seed, "coding/files", split)).sample(found, count)
        return [problem.to_task({"split": split}) for problem in chosen]

    def _file(self, split: str) -> Path:
        path = Path(os.path.expandvars(self.files[split]))
        if not path.is_file():
            unset = "; an environment variable in it is not set" if "$" in str(path) else ""
            raise ValueError(
                f"problems.{split}: there is no file {path}{unset}; docs/coding.md says where the paper's come from"
            )
        return path


def problem_sets(
    problems: Mapping[str, str] | None, form: str, on_bad_problem: str, max_difficulty: int | None
) -> ProblemSets | None:
    """The sets that a configuration names; None for the generated world. Raises `ValueError` naming the argument."""
    one_of("form", form, FORMATS)
    skip = one_of("on_bad_problem", on_bad_problem, ("refuse", "skip")) == "skip"
    hardest = _difficulty(max_difficulty, None if problems is None else form)
    return None if problems is None else ProblemSets(files("problems", problems), form, skip, hardest)


def _difficulty(most: int | None, form: str | None) -> int | None:
    """`max_difficulty`. form: of the files, None for the generated world.

    Raises `ValueError` for a format whose problems have no number of difficulty.
    """
    if most is None:
        return None
    if form not in DIFFICULTY:
        raise ValueError(
            f"max_difficulty: {most}: only problems of files in the format {' or '.join(DIFFICULTY)} number their "
            f"difficulty, and these are {'generated' if form is None else f'in the format {form!r}'}; filter the file "
            "when you prepare it, and set max_difficulty = null"
        )
    return whole("max_difficulty", most, 0, len(DIFFICULTIES) - 1)
