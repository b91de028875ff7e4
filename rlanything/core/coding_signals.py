"""Rewards of the coding setting (paper, 3.2.7 and C.9; reference code `llm_rl_reward.py`): the judge writes unit tests.

Everything is computed from two tables of one task. `dataset[i][k]` says whether program i passes dataset test k.
`generated[i][k]` says whether program i passes generated test k, which the reward model wrote. A cell is None where the
sandbox failed, which says nothing about the program.

A program is ground truth (GT), or right, when it passes every dataset test. A generated test is GT when every GT
program passes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal

from rlanything.core.signals import below_all, z_scores

Table = Sequence[Sequence[bool | None]]
Counted = Literal["right", "all"]
"""Which generated tests count in a program's reward."""


def gt_programs(dataset: Table) -> list[bool | None]:
    """For each program: does it pass every dataset test? None: no test failed it, but not all could be run.

    Raises `ValueError` for a program without dataset tests: it would be right without having passed a test.
    """
    if any(not row for row in dataset):
        raise ValueError("a program without dataset tests can be neither right nor wrong")
    return [_all(row) for row in dataset]


def gt_tests(generated: Table, right: Sequence[bool | None], readable: Sequence[bool]) -> list[bool | None]:
    """For each generated test: do all GT programs pass it?

    None: there is no GT program, or none fails the test but the sandbox failed for some.

    right: from `gt_programs`. readable[k]: whether reply k holds a test. An unreadable test is not GT: False, or None
    where there is no GT program. Raises `ValueError` when `generated` has another shape than (programs, tests).
    """
    columns = _columns(generated, right, readable)
    good = [i for i, is_right in enumerate(right) if is_right]
    return [
        None if not good else _all([column[i] for i in good]) if known else False
        for column, known in zip(columns, readable, strict=True)
    ]


def generated_rewards(dataset: Table, generated: Table, readable: Sequence[bool]) -> list[float | None]:
    """Reward of each generated test.

    A GT test gets + the number of wrong programs that fail it. Any other test gets - the number of wrong programs that
    pass it (3.2.7 of the paper). Alg. 2 line 18 divides both by the number of wrong programs. Its rewards are 1 - p and
    -p, where p is the share of wrong programs that pass the test. The z-scores over the task's tests are the same
    (A.2, Remark 2). Where no program is wrong, the rewards are +1 and -1.

    A wrong program for which the sandbox failed counts as the others do on average: a count of few programs is scaled
    up. None (no reward): no program is right, the test is unreadable, it is not known whether the test is GT, or the
    sandbox failed for every wrong program.
    """
    right = gt_programs(dataset)
    wrong = [i for i, is_right in enumerate(right) if is_right is False]
    found: list[float | None] = []
    for column, known, is_gt in zip(
        _columns(generated, right, readable), readable, gt_tests(generated, right, readable), strict=True
    ):
        seen = [column[i] for i in wrong if column[i] is not None]
        if is_gt is None or not known or (wrong and not seen):
            found.append(None)
        elif not wrong:
            found.append(1.0 if is_gt else -1.0)
        else:
            scale = len(wrong) / len(seen)
            found.append(scale * seen.count(False) if is_gt else -scale * seen.count(True))
    return found


def generated_advantages(dataset: Table, generated: Table, readable: Sequence[bool]) -> list[float | None]:
    """z-score of `generated_rewards` over the task's tests; None: the test does not train the reward model.

    Where no program is right, no test trains. Otherwise a reply without a test gets the smallest advantage of the task
    (0 where there is none) minus one, as a vote without a verdict does. Equal rewards give None.
    """
    scored = z_scores(generated_rewards(dataset, generated, readable), lone=None)
    if not any(gt_programs(dataset)):
        return scored
    return below_all(scored, readable)


def program_rewards(
    dataset: Table, generated: Table, readable: Sequence[bool], lam: float, counted: Counted = "right"
) -> list[float | None]:
    """Reward of each program: pass rate on the dataset's tests + lam * pass rate on the generated tests that count.

    counted: `right`, those that are GT; `all`, those that are readable, as every vote on a step counts. A test that
    shows a fault of a program that passes the dataset's tests is never GT, so with `right` such a fault costs nothing.
    The reference code has lam = 0. Where no test counts, the second term is 0.

    None: a dataset test could not be run, or tests count and the sandbox failed for all of them.
    """
    right = gt_programs(dataset)
    counts_here = readable if counted == "all" else gt_tests(generated, right, readable)
    trusted = [k for k, is_counted in enumerate(counts_here) if is_counted]
    found: list[float | None] = []
    for i, row in enumerate(dataset):
        if any(cell is None for cell in row):
            found.append(None)
            continue
        cells = [generated[i][k] for k in trusted if generated[i][k] is not None] if lam else []
        if lam and trusted and not cells:
            found.append(None)
            continue
        found.append(_share(row) + lam * (_share(cells) if cells else 0.0))
    return found


def program_advantages(
    dataset: Table, generated: Table, readable: Sequence[bool], lam: float, counted: Counted = "right"
) -> list[float | None]:
    """z-score of `program_rewards` over the task's programs (population std). Equal rewards give 0; None stays None."""
    return z_scores(program_rewards(dataset, generated, readable, lam, counted), lone=0.0)


@dataclass(frozen=True, slots=True)
class CodingCounts:
    """The paper's three metrics as counts, which can be summed over tasks. `*_of` is the denominator of its metric."""

    code: int = 0
    """Programs that pass every dataset test."""
    code_of: int = 0
    ut: int = 0
    """Generated tests that are GT, in tasks with a right program."""
    ut_of: int = 0
    detect: int = 0
    """GT tests that reject every wrong program, in tasks with a right and a wrong one."""
    detect_of: int = 0

    def __add__(self, other: CodingCounts) -> CodingCounts:
        return CodingCounts(
            self.code + other.code,
            self.code_of + other.code_of,
            self.ut + other.ut,
            self.ut_of + other.ut_of,
            self.detect + other.detect,
            self.detect_of + other.detect_of,
        )

    @property
    def rates(self) -> dict[str, float]:
        """`code`, `ut` and `detect` as shares; nan where the denominator is 0."""
        pairs = (
            ("code", self.code, self.code_of),
            ("ut", self.ut, self.ut_of),
            ("detect", self.detect, self.detect_of),
        )
        return {name: count / of if of else nan for name, count, of in pairs}


def counts(dataset: Table, generated: Table, readable: Sequence[bool]) -> CodingCounts:
    """The counts of one task.

    An unreadable test counts as not GT. A result that the sandbox failures leave open is not counted.
    """
    right = gt_programs(dataset)
    known = [is_right for is_right in right if is_right is not None]
    wrong = [i for i, is_right in enumerate(right) if is_right is False]
    judged = [is_gt for is_gt in gt_tests(generated, right, readable) if is_gt is not None]
    rejects: list[bool] = []
    if any(known) and wrong:
        for column, is_gt in zip(
            _columns(generated, right, readable), gt_tests(generated, right, readable), strict=True
        ):
            cells = [column[i] for i in wrong]
            if is_gt is not None and not (is_gt and None in cells and True not in cells):
                rejects.append(is_gt and not any(cells))
    return CodingCounts(
        known.count(True), len(known), judged.count(True), len(judged), rejects.count(True), len(rejects)
    )


def pass_rates(table: Table) -> list[float | None]:
    """For each test: the share of programs that pass it, of those that it could be run for.

    None: it could be run for none.
    """
    width = min((len(row) for row in table), default=0)
    columns = [[row[k] for row in table if row[k] is not None] for k in range(width)]
    return [_share(column) if column else None for column in columns]


def consistent(dataset: Table, programs: Sequence[str]) -> bool:
    """Whether a rewritten problem's tests agree with each other: at least two different programs pass all of them.

    If one test contradicts the others, usually no program passes all of them, or only one that was fitted to them.
    """
    passing = {text.strip() for text, right in zip(programs, gt_programs(dataset), strict=True) if right}
    return len(passing) >= 2


def _all(cells: Sequence[bool | None]) -> bool | None:
    """False if any cell is False; otherwise None if any cell is None; otherwise True."""
    if any(cell is False for cell in cells):
        return False
    return None if any(cell is None for cell in cells) else True


def _share(cells: Sequence[bool | None]) -> float:
    return sum(cell is True for cell in cells) / len(cells)


def _columns(
    generated: Table, right: Sequence[bool | None], readable: Sequence[bool]
) -> list[list[bool | None]]:
    """The columns of `generated`, one a test.

    Raises `ValueError` unless it has one row a program and one column a test.
    """
    if len(generated) != len(right) or any(len(row) != len(readable) for row in generated):
        raise ValueError(f"generated is not a table of {len(right)} programs and {len(readable)} tests")
    return [[row[k] for row in generated] for k in range(len(readable))]
