"""Rewards of the coding setting (paper, appendix C; reference code `llm_rl_reward.py`): the judge writes unit tests.

Everything is computed from two tables of one task. `dataset[i][k]` says whether program i passes test k of the dataset.
`generated[i][k]` says the same for test k that the reward model wrote. None in a cell: the sandbox failed, which says
nothing about the program. A ground-truth (GT) program passes every dataset test. Every GT program passes a GT test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from rlanything.core.signals import EPS, spread

Table = Sequence[Sequence[bool | None]]


def gt_programs(dataset: Table) -> list[bool | None]:
    """For each program: does it pass every dataset test? None: no test failed it, but not all could be run.

    Raises `ValueError` for a program without tests, which would be right without having passed anything.
    """
    if any(not row for row in dataset):
        raise ValueError("a program without dataset tests can be neither right nor wrong")
    return [_all(row) for row in dataset]


def gt_tests(generated: Table, right: Sequence[bool | None], readable: Sequence[bool]) -> list[bool | None]:
    """For each generated test: do all GT programs pass it? None: there is no GT program, or it could not be run.

    right: from `gt_programs`. readable: whether the reply held a test; a test that is not readable is False.
    """
    columns = _columns(generated, right, readable)
    good = [i for i, is_right in enumerate(right) if is_right]
    return [
        None if not good else _all([column[i] for i in good]) if known else False
        for column, known in zip(columns, readable, strict=True)
    ]


def generated_rewards(dataset: Table, generated: Table, readable: Sequence[bool]) -> list[float | None]:
    """Reward of each generated test, None where it has none.

    GT: + the number of wrong programs that it rejects. Not GT: - the number of wrong programs that it lets pass
    (3.2.7 of the paper). Divided by the number of wrong programs that is Alg. 2 line 18: 1 - p and -p, where p is the
    test's pass rate on them. The z-score over the task's tests is the same (A.2, Remark 2).
    Where no program is wrong: +1 and -1. Where no program is right, and for an unreadable test: None.
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
            found.append(float(seen.count(False)) if is_gt else -float(seen.count(True)))
    return found


def generated_advantages(dataset: Table, generated: Table, readable: Sequence[bool]) -> list[float | None]:
    """z-score of `generated_rewards` over the task's tests; None: the test does not train the reward model.

    A reply without a test trains with the group's minimum minus one, as a vote without a verdict does; where no
    program is right, nothing trains.
    """
    scored = _z_scores(generated_rewards(dataset, generated, readable), lone=None)
    if not any(gt_programs(dataset)):
        return scored
    floor = min((a for a in scored if a is not None), default=0.0)
    return [a if known else floor - 1.0 for a, known in zip(scored, readable, strict=True)]


def program_rewards(
    dataset: Table, generated: Table, readable: Sequence[bool], lam: float
) -> list[float | None]:
    """Reward of each program: pass rate on the dataset's tests + lam * pass rate on the generated tests that are GT.

    lam = 0 is the reference code. Without a GT test the second term is 0. None: a dataset test could not be run.
    """
    right = gt_programs(dataset)
    trusted = [k for k, is_gt in enumerate(gt_tests(generated, right, readable)) if is_gt]
    found: list[float | None] = []
    for i, row in enumerate(dataset):
        if any(cell is None for cell in row):
            found.append(None)
            continue
        cells = [generated[i][k] for k in trusted if generated[i][k] is not None] if lam else []
        found.append(_share(row) + lam * (_share(cells) if cells else 0.0))
    return found


def program_advantages(
    dataset: Table, generated: Table, readable: Sequence[bool], lam: float
) -> list[float | None]:
    """z-score of `program_rewards` over the task's samples (population std; equal rewards: 0)."""
    return _z_scores(program_rewards(dataset, generated, readable, lam), lone=0.0)


@dataclass(frozen=True, slots=True)
class CodingCounts:
    """The paper's three metrics as counts, which add up over tasks. `*_of`: how many could have counted."""

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
        """`code`, `ut` and `detect` as shares; nan where nothing could have counted."""
        pairs = (
            ("code", self.code, self.code_of),
            ("ut", self.ut, self.ut_of),
            ("detect", self.detect, self.detect_of),
        )
        return {name: count / of if of else nan for name, count, of in pairs}


def counts(dataset: Table, generated: Table, readable: Sequence[bool]) -> CodingCounts:
    """The counts of one task. Unreadable tests count as wrong. What could not be run is not counted."""
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
    """For each test, by its index, the share of programs that pass it; None: it could be run for none."""
    width = min((len(row) for row in table), default=0)
    columns = [[row[k] for row in table if row[k] is not None] for k in range(width)]
    return [_share(column) if column else None for column in columns]


def consistent(dataset: Table, programs: Sequence[str], least: int = 2) -> bool:
    """Whether a rewritten problem's tests agree with each other: `least` different programs pass all of them.

    If a test contradicts the others, no program passes all of them, or only one that was written to fit.
    """
    passing = {text.strip() for text, right in zip(programs, gt_programs(dataset), strict=True) if right}
    return len(passing) >= least


def _all(cells: Sequence[bool | None]) -> bool | None:
    """True, False, or None when nothing failed and something is not known."""
    if any(cell is False for cell in cells):
        return False
    return None if any(cell is None for cell in cells) else True


def _share(cells: Sequence[bool | None]) -> float:
    return sum(cell is True for cell in cells) / len(cells)


def _columns(
    generated: Table, right: Sequence[bool | None], readable: Sequence[bool]
) -> list[list[bool | None]]:
    """`generated` by test. Raises `ValueError` when it has not one row a program and one column a test."""
    if len(generated) != len(right) or any(len(row) != len(readable) for row in generated):
        raise ValueError(f"generated is not a table of {len(right)} programs and {len(readable)} tests")
    return [[row[k] for row in generated] for k in range(len(readable))]


def _z_scores(values: Sequence[float | None], lone: float | None) -> list[float | None]:
    """z-scores of the values that are not None. lone: the score of all of them where they do not differ."""
    known = [value for value in values if value is not None]
    std = spread(known)
    if std < EPS:
        return [None if value is None else lone for value in values]
    centre = sum(known) / len(known)
    return [None if value is None else (value - centre) / std for value in values]
