"""Sets of problems in files: which are there, and tasks from them."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envs.coding.formats.codecontests import DIFFICULTIES
from envs.coding.formats.files import DIFFICULTY, FORMATS, load
from envs.coding.problem import Problem
from envs.settings import files, one_of, whole
from rlanything.core.printable import counted, shown
from rlanything.core.seeds import derive_seed
from rlanything.core.splits import TRAIN
from rlanything.core.types import Task

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProblemSets:
    """files: name of a set, which is a split -> its file. forms: split -> format of its file. skip: leave out records
    that cannot be read. hardest: the largest number of difficulty in sets that have numbers; None: any."""

    files: Mapping[str, str]
    forms: Mapping[str, str]
    skip: bool
    hardest: int | None
    _statements: dict[str, frozenset[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Split -> the statements of a set that was read."""

    def check(self, splits: Collection[str]) -> None:
        """Raise `ValueError` unless the files of these splits are there."""
        for split in self.files:
            if split in splits:
                self._file(split)

    def draw(self, split: str, count: int, seed: int) -> list[Task]:
        """`count` problems of a set, in an order that depends on the seed.

        Raises `ValueError` where it has fewer, or has a problem of the set `train`.
        """
        found = self._usable(split)
        if len(found) < count:
            raise ValueError(
                f"problems.{split}: {count} are wanted and {self._file(split)} holds {len(found)} that can be used"
            )
        self._require_apart(split, found)
        chosen = random.Random(derive_seed(seed, "coding/files", split)).sample(found, count)
        return [problem.to_task({"split": split}) for problem in chosen]

    def _usable(self, split: str) -> list[Problem]:
        path, form = self._file(split), self.forms[split]
        found, refused = load(path, form, skip=self.skip)
        for reason in refused:
            _LOG.warning("left out: %s", reason)
        if self.hardest is not None and form in DIFFICULTY:
            found = [problem for problem in found if DIFFICULTY[form](problem) <= self.hardest]
        self._statements[split] = frozenset(map(_normalized, found))
        return found

    def _require_apart(self, split: str, found: Sequence[Problem]) -> None:
        """Raise `ValueError` where problems of a set are also in `train`, whatever their limits, tests and names.

        A run that starts from a task buffer may not have the file of `train`. Then nothing is compared.
        """
        if split == TRAIN or TRAIN not in self.files or not self._path(TRAIN).is_file():
            return
        if TRAIN not in self._statements:
            self._usable(TRAIN)
        shared = [problem for problem in found if _normalized(problem) in self._statements[TRAIN]]
        if shared:
            raise ValueError(
                f"problems.{split}: {self._path(split)} has {counted(len(shared), 'problem')} that {self._path(TRAIN)} "
                f"(problems.{TRAIN}) has too: {shown(_normalized(shared[0]))}. Models would be measured on what they "
                "are trained on. Leave these problems out of one of the files, or let the panel take problems of the "
                f"training file that are not trained on (tasks.panels.<name>.split = {TRAIN})"
            )

    def _path(self, split: str) -> Path:
        return Path(os.path.expandvars(self.files[split]))

    def _file(self, split: str) -> Path:
        path = self._path(split)
        if not path.is_file():
            unset = "; an environment variable in it is not set" if "$" in str(path) else ""
            raise ValueError(
                f"problems.{split}: there is no file {path}{unset}; docs/coding.md says where the paper's come from"
            )
        return path


def problem_sets(
    problems: Mapping[str, str] | None,
    form: str | Mapping[str, str],
    on_bad_problem: str,
    max_difficulty: int | None,
) -> ProblemSets | None:
    """The sets that a configuration names; None for the generated world. Raises `ValueError` naming the argument."""
    found = None if problems is None else files("problems", problems)
    forms = _forms(form, found or {})
    skip = one_of("on_bad_problem", on_bad_problem, ("refuse", "skip")) == "skip"
    hardest = _difficulty(max_difficulty, forms.values())
    return None if found is None else ProblemSets(found, forms, skip, hardest)


def _forms(form: str | Mapping[str, str], splits: Collection[str]) -> dict[str, str]:
    """The format of each split: one for all, or a mapping that names one for each. No splits: the generated world."""
    if not isinstance(form, Mapping):
        return dict.fromkeys(splits, one_of("form", form, FORMATS))
    if not splits:
        raise ValueError("form: it names a format for each set, and problems names no sets; name one format")
    for split in form:
        one_of("form", split, splits)
    missing = [split for split in splits if split not in form]
    if missing:
        raise ValueError(
            f"form: it names no format for {', '.join(missing)}; it must name one for each set of problems, or be one "
            f"format for all: {', '.join(FORMATS)}"
        )
    return {split: one_of(f"form.{split}", form[split], FORMATS) for split in splits}


def _difficulty(most: int | None, forms: Collection[str]) -> int | None:
    """`max_difficulty`. forms: of the files, none for the generated world.

    Raises `ValueError` where no set has problems with a number of difficulty.
    """
    if most is None:
        return None
    if not DIFFICULTY.keys() & set(forms):
        held = " and ".join(sorted(set(map(repr, forms))))
        raise ValueError(
            f"max_difficulty: {most}: only problems of files in the format {' or '.join(DIFFICULTY)} number their "
            f"difficulty, and these are {f'in the format {held}' if forms else 'generated'}; filter the file when you "
            "prepare it, and set max_difficulty = null"
        )
    return whole("max_difficulty", most, 0, len(DIFFICULTIES) - 1)


def _normalized(problem: Problem) -> str:
    """The statement, whatever its white space."""
    return " ".join(problem.statement.split())
