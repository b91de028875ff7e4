"""Logs of inspect_ai: one `.eval` file for each iteration, a zip of JSON, as version 2 of the format has it.

An iteration is one evaluation of one policy, so it is one log. A task is a sample, and its rollouts are epochs. A
sample is written and forgotten, so memory holds one iteration. The package is not needed: it reads the files in the
tests. Dates in the zip are fixed. Runs hold no times: `created` counts iterations in seconds from 1970, so that logs
sort.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from rlanything import __version__
from rlanything.core.ids import content_id
from rlanything.core.types import Json
from rlanything.exports.about import about
from rlanything.exports.reading import Group, Reader, Rollout
from rlanything.exports.tables import mean_vote, step_vote
from rlanything.exports.texts import json_text
from rlanything.loop.metrics import mean_or_none

VERSION = 2
"""Of the format of logs."""
SHORTENED = 1000
"""Characters of a text in the list of samples; the log has all of it."""
_DATE = (1980, 1, 1, 0, 0, 0)
"""The first that a zip can hold."""
_SCORES = ("outcome", "mean_vote", "reward", "advantage")


def write(folder: Path, reader: Reader, numbers: Sequence[int]) -> tuple[dict[str, int], list[str]]:
    """Write the logs. Raises `OSError`."""
    facts, samples = about(reader.run), 0
    for number, groups in reader.iterations(numbers):
        if groups:
            samples += _log(folder, facts, number, groups)
    return {"samples": samples}, []


def _log(folder: Path, facts: Mapping[str, Json], number: int, groups: Sequence[Group]) -> int:
    """Write the log of an iteration; how many samples it has."""
    spec = _spec(facts, number, groups)
    created = spec["created"][:19].replace(":", "-")
    slug = re.sub(r"[^A-Za-z0-9]+", "-", str(facts["run"])).strip("-")
    summaries, rollouts = [], [one for group in groups for one in group.rollouts]
    with ZipFile(folder / f"{created}_{slug}_{spec['task_id']}.eval", "w", ZIP_DEFLATED) as archive:
        plan: dict[str, Json] = {"name": "plan", "steps": [], "config": {}}
        _put(archive, "_journal/start.json", {"version": VERSION, "eval": spec, "plan": plan})
        for one in rollouts:
            sample = _sample(one, spec)
            _put(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(_summary(sample))
        _put(archive, "summaries.json", summaries)
        results = _results(rollouts)
        header = {"version": VERSION, "status": "success", "eval": spec, "plan": plan, "results": results}
        times = {"started_at": spec["created"], "completed_at": spec["created"]}
        _put(archive, "header.json", {**header, "stats": {**times, "model_usage": _usage(rollouts, spec)}})
    return len(rollouts)


def _put(archive: ZipFile, name: str, value: Json) -> None:
    entry = ZipInfo(name, _DATE)
    entry.compress_type = ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, json_text(value))


def _spec(facts: Mapping[str, Json], number: int, groups: Sequence[Group]) -> dict[str, Json]:
    ids = {
        name: content_id([facts["fingerprint"], facts["run"], number, name])[:22] for name in ("eval", "task")
    }
    created = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
    names = [_id(group.slot, group.proposal) for group in groups]
    return {
        "eval_id": ids["eval"],
        "run_id": content_id([facts["fingerprint"], facts["run"]])[:22],
        "created": created.isoformat(),
        "task": facts["run"],
        "task_id": ids["task"],
        "dataset": {"name": "task buffer", "samples": len(names), "sample_ids": names, "shuffled": False},
        "model": f"policy/iteration-{number}",
        "config": {"epochs": max(one.page["rollout"] for g in groups for one in g.rollouts) + 1},
        "packages": {"rlanything": __version__},
        "metadata": {**facts, "iteration": number},
        "scorers": [{"name": name} for name in _SCORES],
    }


def _id(slot: int, proposal: bool) -> str:
    return f"slot-{slot}-rewrite" if proposal else f"slot-{slot}"


def _sample(one: Rollout, spec: Mapping[str, Json]) -> dict[str, Json]:
    page, turns = one.page, one.turns
    messages = [_message(message, spec["model"]) for message in turns.conversation()]
    sample: dict[str, Json] = {
        "id": _id(page["slot"], one.proposal),
        "epoch": page["rollout"] + 1,
        "input": [_message(message, spec["model"]) for message in turns.opening],
        "target": "",
        "messages": messages,
        "output": {"model": spec["model"], "choices": [], "completion": ""},
        "scores": _scores(one),
        "metadata": _metadata(one),
        "model_usage": _usage([one], spec),
        "uuid": content_id([spec["eval_id"], one.where])[:22],
    }
    if turns.replies:
        said = messages[-1]
        sample["output"] |= {
            "choices": [{"message": said, "stop_reason": "stop"}],
            "completion": said["content"],
        }
    if not one.record.episode.trajectory.counts:
        sample["error"] = {"message": page["error"], "traceback": "", "traceback_ansi": ""}
    return sample


def _message(message: Mapping[str, str], model: Json) -> dict[str, Json]:
    more = {"source": "generate", "model": model} if message["role"] == "assistant" else {}
    return {**message, **more}


def _usage(rollouts: Sequence[Rollout], spec: Mapping[str, Json]) -> dict[str, Json]:
    """Tokens that the policy read and wrote. A prompt counts whole at every step."""
    steps = [step for one in rollouts for step in one.record.episode.trajectory.steps]
    read, wrote = sum(len(step.prompt_ids) for step in steps), sum(len(step.response_ids) for step in steps)
    return {spec["model"]: {"input_tokens": read, "output_tokens": wrote, "total_tokens": read + wrote}}


def _values(one: Rollout) -> dict[str, float | None]:
    """A crashed rollout has no outcome: it enters no statistics."""
    counts = one.record.episode.trajectory.counts
    outcome = float(one.page["outcome"] > 0) if counts else None
    return dict(zip(_SCORES, (outcome, mean_vote(one), one.reward, one.advantage), strict=True))


def _scores(one: Rollout) -> dict[str, Json]:
    """The scores that are known. The outcome is C (correct) or I (incorrect), as Inspect's own scorers say it."""
    known = {name: value for name, value in _values(one).items() if value is not None}
    shown = {name: "CI"[not value] if name == "outcome" else value for name, value in known.items()}
    return {name: {"value": value, "history": []} for name, value in shown.items()}


def _metadata(one: Rollout) -> dict[str, Json]:
    page = one.page
    names = ("slot", "rollout", "rewrite", "accuracy", "status", "error", "trains_policy", "why_not", "tests")
    return {
        "iteration": one.iteration,
        "proposal": one.proposal,
        "instruction": page["task"]["instruction"],
        "task_id": page["task"]["task_id"],
        **{name: page[name] for name in names},
        "steps": [
            {name: value for name, value in step.items() if name not in ("prompt", "response")}
            | {"mean_vote": step_vote(step)}
            for step in page["steps"]
        ],
    }


def _summary(sample: Mapping[str, Any]) -> dict[str, Json]:
    """A sample in the list of samples: short texts, and no steps."""
    short = [{**m, "content": m["content"][:SHORTENED]} for m in sample["input"]]
    metadata = {k: v for k, v in sample["metadata"].items() if isinstance(v, (int, float, bool))}
    instruction = sample["metadata"]["instruction"][:SHORTENED]
    summary = {
        **{name: sample[name] for name in ("id", "epoch", "target", "scores", "uuid", "model_usage")},
        "input": short,
        "metadata": {**metadata, "instruction": instruction},
        "completed": True,
        "message_count": len(sample["messages"]),
    }
    return summary | ({"error": sample["error"]["message"][:SHORTENED]} if "error" in sample else {})


def _results(rollouts: Sequence[Rollout]) -> dict[str, Json]:
    """The mean of each score over the rollouts that have it. That of outcomes is the accuracy."""
    values = [_values(one) for one in rollouts]
    scores = []
    for name in _SCORES:
        known = [value[name] for value in values if value[name] is not None]
        if known:
            metric = "accuracy" if name == "outcome" else "mean"
            found = {metric: {"name": metric, "value": mean_or_none(known)}}
            counted = {"scored_samples": len(known), "unscored_samples": len(values) - len(known)}
            scores.append({"name": name, "scorer": name, **counted, "metrics": found})
    whole = sum(one.record.episode.trajectory.counts for one in rollouts)
    return {"total_samples": len(rollouts), "completed_samples": whole, "scores": scores}
