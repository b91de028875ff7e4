"""Whether the tasks that were accepted can be solved."""

from __future__ import annotations

from rlanything.report.formatting import code
from rlanything.report.report_data import ReportData
from rlanything.report.sections.parts import bullets

PAPER_SOLVED = (
    "Paper (Fig. 7a): a stronger policy solves 96.0, 96.7 and 94.2 % of its accepted tasks in at least one of 16 "
    "tries."
)

EXPERT_LIMIT = (
    "The expert has no limit of steps, and policies are measured within {most} (`evaluate.max_steps`). So a task that "
    "it solves may be too long for a policy."
)


def solved(data: ReportData) -> str:
    """A list, arm by arm; '' where no accepted task was tried."""
    evaluate = data.config.evaluate
    solver = "the environment's expert" if evaluate.solver is None else code(evaluate.solver.path)
    steps = "as many steps as it needs" if evaluate.solver is None else f"{evaluate.max_steps} steps each"
    lines = [
        f"{code(arm)}: {solver} solves {found.solved} of {found.tasks} accepted tasks in at most "
        f"{evaluate.solver_tries} tries, with {steps} ({100 * found.solved / found.tasks:.1f} %)."
        + ("" if evaluate.solver is None else f" A single try solves {100 * found.single:.1f} %.")
        + (f" Left out: {found.untried} that it could not try." if found.untried else "")
        for arm, found in data.extras.solved.items()
    ]
    limit = [EXPERT_LIMIT.format(most=evaluate.max_steps)] if evaluate.solver is None else []
    return bullets([*lines, *limit, PAPER_SOLVED]) if lines else ""
