"""Episodes of verifiers: one a line in traces.jsonl, as version 1 of its traces has them (verifiers 0.4).

A rollout is an episode with one trace. Its messages are nodes of a graph with the token ids, log-probs and advantages
of the run, so that a path through the graph is what trained. The rollouts of a task are a group; the iteration is the
step of the training run. Runs hold no times: all of them are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything import __version__
from rlanything.core.ids import content_id
from rlanything.core.types import Json, Status
from rlanything.exports.about import about
from rlanything.exports.reading import Reader, Rollout
from rlanything.exports.tables import mean_vote, step_vote
from rlanything.exports.template import Message
from rlanything.exports.texts import write_rows
from rlanything.loop.metrics import mean_or_none

VERSION = 1
"""Of the format of traces."""
Node = dict[str, Json]


def write(folder: Path, reader: Reader, numbers: Sequence[int]) -> tuple[dict[str, int], list[str]]:
    """Write traces.jsonl. Raises `OSError`."""
    facts = about(reader.run)
    found = (group.rollouts for _, groups in reader.iterations(numbers) for group in groups)
    count = write_rows(folder / "traces.jsonl", (_episode(one, facts) for group in found for one in group))
    return {"episodes": count}, []


def _episode(one: Rollout, facts: Mapping[str, Json]) -> dict[str, Json]:
    """One line."""
    run = content_id([facts["fingerprint"], facts["run"]])[:32]
    where = one.where
    group = content_id([run, {name: where[name] for name in where if name != "rollout"}])[:32]
    step = {"type": "train", "step": one.iteration, "policy": {"start": one.iteration, "end": one.iteration}}
    trace = _trace(one, content_id([run, where, "trace"])[:32])
    return {
        "id": content_id([run, where])[:32],
        "env": {"id": one.page["task"].get("env", "")},
        "task": trace["task"],
        "group": {"id": group},
        "run": {"type": "train", "id": run, "name": facts["run"], "work": step},
        "ok": trace["ok"],
        "errors": trace["errors"],
        "traces": [trace],
    }


def _trace(one: Rollout, name: str) -> dict[str, Json]:
    page, trajectory = one.page, one.record.episode.trajectory
    nodes = list(_nodes(one))
    model = f"policy/iteration-{one.iteration}"
    steps = zip(_sampled(nodes), trajectory.steps, strict=True)
    crashed = [] if trajectory.counts else [{"type": page["status"], "message": page["error"]}]
    scores = {"outcome": float(page["outcome"]), "mean_vote": mean_vote(one), "advantage": one.advantage}
    return {
        "version": VERSION,
        "id": name,
        "verifiers": {"version": f"rlanything {__version__}"},
        "task": _task(one),
        "agent": {"config": {"model": model}, "name": "policy", "trainable": page["trains_policy"]},
        "nodes": nodes,
        "calls": [
            {
                "node": k,
                "model": model,
                "usage": {"prompt_tokens": len(step.prompt_ids), "completion_tokens": len(step.response_ids)},
            }
            for k, step in steps
        ],
        "rewards": _rewards(one),
        "metrics": scores,
        "info": {**one.where, "why_not": page["why_not"], "steps": list(map(_step, page["steps"]))},
        "is_completed": True,
        "ok": trajectory.counts,
        "stop_condition": _stopped(page),
        "errors": crashed,
        "timing": {"start": 0},
    }


def _task(one: Rollout) -> dict[str, Json]:
    task, opening = one.page["task"], one.turns.opening
    told = [message["content"] for message in opening if message["role"] == "system"]
    asked = [message for message in opening if message["role"] != "system"]
    data = {"idx": one.page["slot"], "id": task["task_id"], "description": task["instruction"]}
    known = {name: task[name] for name in ("payload", "metadata") if name in task}
    data |= {"prompt": asked, "system_prompt": told[0] if told else None, **known}
    return {"type": "Task", "data": data, "key": task["task_id"]}


def _nodes(one: Rollout) -> Iterator[Node]:
    """The messages. What a prompt adds to the tokens before it belongs to its last message."""
    episode, turns, last = one.record.episode, one.turns, -1
    seen: tuple[int, ...] = ()
    for k, step in enumerate(episode.trajectory.steps):
        goes_on = turns.whole and k > 0
        asked = [{"role": "user", "content": turns.asked[k - 1]}] if goes_on else turns.prompt(k)
        added = step.prompt_ids[len(seen) :] if goes_on else step.prompt_ids
        for message in asked:
            ids = added if message is asked[-1] else ()
            root = not goes_on and message is asked[0]
            yield _node(None if root else last, message, ids, sampled=False)
            last += 1
        node = _node(last, turns.completion(k)[0], step.response_ids, sampled=True)
        advantage = None if episode.advantages is None else [episode.advantages[k]] * len(step.response_ids)
        yield {**node, "logprobs": list(step.logprobs), "advantages": advantage}
        last, seen = last + 1, step.prompt_ids + step.response_ids


def _node(parent: int | None, message: Message, ids: Sequence[int], *, sampled: bool) -> Node:
    tokens = {"token_ids": list(ids), "mask": [sampled] * len(ids)}
    return {"parent": parent, "message": message, "sampled": sampled, "timestamp": 0, **tokens}


def _sampled(nodes: Sequence[Node]) -> Iterator[int]:
    return (k for k, node in enumerate(nodes) if node["sampled"])


def _rewards(one: Rollout) -> dict[str, Json]:
    """The mean reward of the steps, taken apart into outcome and votes where it is made of them (Eq. 1)."""
    page = one.page
    if one.reward is None:
        return {"reward": None}
    if page["writes"] != "votes":
        return {"reward": {"score": one.reward}}
    votes = mean_or_none(step["mean_vote"] for step in page["steps"])
    outcome = {"score": float(page["outcome"]), "weight": float(page["uses_outcome"])}
    return {"outcome": outcome, "votes": {"score": votes, "weight": page["lambda"]}}


def _step(step: Mapping[str, Any]) -> dict[str, Json]:
    """What is known of a step beside its messages: its votes, its reward and its advantage."""
    left = ("prompt", "response", "prompt_tokens", "response_tokens")
    return {name: value for name, value in step.items() if name not in left} | {"mean_vote": step_vote(step)}


def _stopped(page: Mapping[str, Any]) -> str:
    """Why the episode ended, in the words of verifiers where it has one."""
    if page["status"] != Status.TRUNCATED:
        return str(page["status"])
    return "max_total_tokens" if page["error"] else "max_turns"
