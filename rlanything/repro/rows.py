"""Whether the files of a finished run are all there, and its rows of metrics follow from one another.

What the loop computes in an iteration is replayed (`replay`). This is what no single iteration says.
"""

from __future__ import annotations

from math import isfinite

from rlanything.config import Config
from rlanything.loop.critic import CRITICS
from rlanything.repro.stored import StoredRun

SPENT = ("policy_tokens", "reward_tokens")
RECORDS = ("rollouts", "tests", CRITICS)
PANEL = "panel/"
"""Prefix of what is measured on panels."""
ROW = ("iteration", "tokens_before", "accepted_total")
"""What every row has. The last one has only panels besides: its iteration only measures."""
BESIDE = (*ROW, "staleness")
"""What a row may have that a replay does not compute: these, and the following."""
NOT_REPLAYED = ("policy/", "reward/", PANEL, "crashed/", "endpoint/")
"""Prefixes of metrics that need weights, panels or endpoints."""
TAUGHT = {"policy/": "policy_trajectories", "reward/": "reward_steps"}
"""Prefix of the metrics of a model's updates -> the metric that says how much it was taught in the iteration."""


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
    return _file_problem(run) or _change_problem(run) or _row_problem(run)


def _file_problem(run: StoredRun) -> str:
    """Records of an iteration that the run does not have. The last one only measures, so its files are empty."""
    last = run.iterations.stop
    for name in RECORDS:
        if odd := run.unnumbered(name):
            return f"{run.folder / name / odd}: no iteration writes a file of this name"
        for iteration in run.recorded(name):
            path = run.file(iteration, name)
            if iteration > last:
                return f"{path}: the run has {last} iterations, and no rollouts after them"
            if iteration == last and run.records(iteration, name):
                return f"{path}: iteration {last} only measures, and this file holds {name}"
    return ""


def _change_problem(run: StoredRun) -> str:
    """A change of the buffer in the last iteration, which only measures, or after it."""
    last = run.iterations.stop
    for event in run.buffers.events:
        if event.iteration >= last:
            return (
                f"the buffer has an event of iteration {event.iteration} (slot {event.slot}), and tasks change in "
                f"iterations 0 to {last - 1}"
            )
    before, after = (run.buffers.at(iteration).digest for iteration in (last, last + 1))
    if before != after:
        return f"snapshot {last + 1} is not snapshot {last}, and iteration {last} only measures"
    return ""


def _row_problem(run: StoredRun) -> str:
    """The first row that is not at its place, has or lacks a metric, or whose tokens are not the sum of those before.

    A key that no row has is of a later version.
    """
    tokens = 0
    known = {key for row in run.metrics for key in row}
    for place, row in enumerate(run.metrics):
        if wrong := next(
            (f"{key} is {x}" for key, x in row.items() if x is not None and not isfinite(x)), ""
        ):
            return f"row {place} of metrics.jsonl: {wrong}, and no number"
        for key, expected in (("iteration", place), ("tokens_before", tokens)):
            if key in known and row.get(key) != expected:
                return f"row {place} of metrics.jsonl: {key} is {row.get(key)}, and not {expected}"
        for prefix, taught in TAUGHT.items():
            missing = sorted(key for key in known - row.keys() if key.startswith(prefix))
            if row.get(taught) and missing:
                return (
                    f"row {place} of metrics.jsonl: {missing[0]} is missing, and {taught} is {row[taught]:g}"
                )
        tokens += sum(int(row.get(key) or 0) for key in SPENT)
    accepted, last = run.buffers.latest.accepted, run.metrics[-1]
    for key in last:
        if key not in ROW and not key.startswith(PANEL):
            return f"the last row of metrics.jsonl has {key}, and its iteration only measures"
    if "accepted_total" in known and last.get("accepted_total") != accepted:
        found = last.get("accepted_total")
        return f"the last row of metrics.jsonl: accepted_total is {found}, and not {accepted}"
    return ""
