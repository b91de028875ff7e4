"""Whether the files of a finished run are all there, and its rows of metrics follow from one another.

What the loop computes in an iteration is replayed (`replay`). This is what no single iteration says.
"""

from __future__ import annotations

from rlanything.config import Config
from rlanything.repro.stored import StoredRun

SPENT = ("policy_tokens", "reward_tokens")


def first_gap(run: StoredRun, config: Config) -> str:
    """A message about the first thing that is missing or does not follow; '' for none, and for a run in training.

    Raises `ConfigError` for a file that cannot be read.
    """
    if run.in_training:
        return ""
    iterations = config.train.iterations
    if len(run.metrics) != iterations + 1:
        return f"metrics.jsonl has {len(run.metrics)} rows, and a run of {iterations} iterations {iterations + 1}"
    if list(run.buffers.iterations) != list(
        range(iterations + 2)
    ):  # before each iteration, and after the last
        return f"the buffer has snapshots {list(run.buffers.iterations)}, and not 0 to {iterations + 1}"
    return _row_problem(run)


def _row_problem(run: StoredRun) -> str:
    """The first row that is not at its place, or whose count of tokens is not the sum of those before it.

    A key that no row has is of a later version.
    """
    tokens = 0
    for place, row in enumerate(run.metrics):
        for key, expected in (("iteration", place), ("tokens_before", tokens)):
            if any(key in other for other in run.metrics) and row.get(key) != expected:
                return f"row {place} of metrics.jsonl: {key} is {row.get(key)}, and not {expected}"
        tokens += sum(int(row.get(key) or 0) for key in SPENT)
    accepted, last = run.buffers.latest.accepted, run.metrics[-1]
    if last.get("accepted_total", accepted) != accepted:
        return (
            f"the last row of metrics.jsonl: accepted_total is {last['accepted_total']}, and not {accepted}"
        )
    return ""
