"""Tables as Parquet: rollouts, steps, and votes or tests, a file for each iteration that has any, with declared
columns.

The folder is a dataset of the Hugging Face hub: each table is a configuration in the front matter of README.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rlanything.core.ids import canonical_json
from rlanything.exports.reading import Group, Reader, Rollout
from rlanything.exports.texts import clean
from rlanything.loop.metrics import mean_or_none

WHERE: dict[str, Any] = {"run": pl.String, "iteration": pl.Int64, "slot": pl.Int64, "proposal": pl.Boolean}
_AT: dict[str, Any] = {**WHERE, "rollout": pl.Int64}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "rollouts": {
        **_AT,
        "task_id": pl.String,
        "env": pl.String,
        "instruction": pl.String,
        "payload": pl.String,
        "direction": pl.String,
        "decision": pl.String,
        "accuracy": pl.Float64,
        "outcome": pl.Int64,
        "status": pl.String,
        "error": pl.String,
        "steps": pl.Int64,
        "mean_vote": pl.Float64,
        "reward": pl.Float64,
        "advantage": pl.Float64,
        "trains": pl.Boolean,
        "why_not": pl.String,
        "messages": pl.List(pl.Struct({"role": pl.String, "content": pl.String})),
        "own_tests": pl.List(pl.Boolean),
        "written_tests": pl.List(pl.Boolean),
    },
    "steps": {
        **_AT,
        "step": pl.Int64,
        "prompt": pl.String,
        "response": pl.String,
        "action": pl.String,
        "valid": pl.Boolean,
        "observation": pl.String,
        "mean_vote": pl.Float64,
        "reward": pl.Float64,
        "advantage": pl.Float64,
        "good": pl.Boolean,
        "good_reason": pl.String,
        "commands": pl.List(pl.String),
        "prompt_tokens": pl.Int64,
        "response_ids": pl.List(pl.Int64),
        "response_logprobs": pl.List(pl.Float64),
    },
    "votes": {
        **_AT,
        "step": pl.Int64,
        "vote": pl.Int64,
        "verdict": pl.Int64,
        "reason": pl.String,
        "reply": pl.String,
        "tokens": pl.Int64,
        "advantage": pl.Float64,
        "weight": pl.Float64,
        "trains": pl.Boolean,
    },
    "tests": {
        **WHERE,
        "test": pl.Int64,
        "text": pl.String,
        "reply": pl.String,
        "right": pl.Boolean,
        "reward": pl.Float64,
        "advantage": pl.Float64,
        "trains": pl.Boolean,
    },
}
"""The columns of each table."""
Rows = dict[str, list[dict[str, Any]]]


def write(folder: Path, reader: Reader, numbers: Sequence[int]) -> tuple[dict[str, int], list[str]]:
    """Write the tables. How many rows each has, and the front matter that declares them. Raises `OSError`."""
    counts: dict[str, int] = defaultdict(int)
    for number, groups in reader.iterations(numbers):
        rows: Rows = defaultdict(list)
        for group in groups:
            _add(group, rows)
        for name, found in rows.items():
            counts[f"{name} rows"] += len(found)
            file = folder / name / f"iteration_{number:04d}.parquet"
            file.parent.mkdir(exist_ok=True)
            named = [{"run": reader.run.name, **row} for row in found]
            pl.DataFrame(clean(named), schema=SCHEMAS[name], orient="row").write_parquet(file)
    return dict(counts), list(_front([name for name in SCHEMAS if f"{name} rows" in counts]))


def _front(names: Sequence[str]) -> Iterator[str]:
    yield "configs:"
    for name in names:
        yield f"- config_name: {name}"
        yield f"  data_files: {name}/*.parquet"
        if name == "rollouts":
            yield "  default: true"


def _add(group: Group, rows: Rows) -> None:
    """The rows of a task: those of its rollouts, and its tests once."""
    for one in group.rollouts:
        rows["rollouts"].append(_rollout(one))
        for k, step in enumerate(one.page["steps"]):
            rows["steps"].append(_step(one, k, step))
            rows["votes"] += _votes(one, k, step)
        if not rows["votes"]:
            del rows["votes"]
    tests = group.rollouts[0].page["tests"]
    where = {"iteration": group.iteration, "slot": group.slot, "proposal": group.proposal}
    if tests and tests["written"]:
        rows["tests"] += [
            {**where, "test": k, **{name: test[name] for name in list(SCHEMAS["tests"])[len(WHERE) + 1 :]}}
            for k, test in enumerate(tests["written"])
        ]


def _rollout(one: Rollout) -> dict[str, Any]:
    page, task, rewrite = one.page, one.page["task"], one.page["rewrite"] or {}
    programs = page["tests"]["programs"] if page["tests"] else ()
    ran: Mapping[str, Any] = next((row for row in programs if row["rollout"] == page["rollout"]), {})
    return {
        **one.where,
        **{name: task.get(name) for name in ("task_id", "env", "instruction")},
        "payload": canonical_json(task["payload"]) if "payload" in task else None,
        **{name: rewrite.get(name) for name in ("direction", "decision")},
        **{name: page[name] for name in ("accuracy", "outcome", "status", "error", "why_not")},
        "steps": len(page["steps"]),
        "mean_vote": mean_vote(one),
        "reward": one.reward,
        "advantage": one.advantage,
        "trains": page["trains_policy"],
        "messages": one.turns.conversation(),
        "own_tests": ran.get("dataset"),
        "written_tests": ran.get("written"),
    }


def mean_vote(one: Rollout) -> float | None:
    """The mean over a rollout's steps of their mean votes; None where no step has a readable vote."""
    return mean_or_none(step_vote(step) for step in one.page["steps"])


def step_vote(step: Mapping[str, Any]) -> float | None:
    """The mean of a step's readable votes; None without one."""
    return mean_or_none(vote["verdict"] for vote in step.get("votes", ()))


def _step(one: Rollout, k: int, step: Mapping[str, Any]) -> dict[str, Any]:
    taken = one.record.episode.trajectory.steps[k]
    same = ("prompt", "response", "action", "valid", "observation", "reward", "advantage", "prompt_tokens")
    return {
        **one.where,
        "step": k,
        **{name: step[name] for name in same},
        "mean_vote": step_vote(step),
        "good": step.get("good"),
        "good_reason": step.get("reason"),
        "commands": step.get("commands"),
        "response_ids": list(taken.response_ids),
        "response_logprobs": list(taken.logprobs),
    }


def _votes(one: Rollout, k: int, step: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = list(SCHEMAS["votes"])[len(_AT) + 2 :]
    votes = enumerate(step.get("votes", ()))
    return [{**one.where, "step": k, "vote": j, **{name: vote[name] for name in names}} for j, vote in votes]
