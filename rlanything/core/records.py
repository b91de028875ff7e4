"""Trajectories and judgements as JSON records: what a run folder stores of every rollout.

A prompt that extends the turn before it is stored as what it adds, so that a multi-turn episode costs its length once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlanything.core.types import Json, Judgement, Status, Step, Trajectory, Vote

Ids = tuple[int, ...]


def trajectory_to_json(trajectory: Trajectory) -> dict[str, Json]:
    """The trajectory, token for token."""
    steps = []
    before: Ids = ()
    for step in trajectory.steps:
        steps.append(
            {
                **_delta("prompt", step.prompt_ids, before),
                "response": list(step.response_ids),
                "logprobs": list(step.logprobs),
                "allowed": [list(a) for a in step.allowed],
                "action": step.action,
                "valid": step.valid,
                "observation": step.observation,
            }
        )
        before = step.prompt_ids + step.response_ids
    return {
        "task_id": trajectory.task_id,
        "slot": trajectory.slot,
        "rollout": trajectory.rollout,
        "seed": trajectory.seed,
        "first_observation": trajectory.first_observation,
        "outcome": trajectory.outcome,
        "status": trajectory.status.value,
        "error": trajectory.error,
        "steps": steps,
    }


def trajectory_from_json(data: Mapping[str, Json]) -> Trajectory:
    """Inverse of `trajectory_to_json`. Raises `KeyError` or `ValueError` for a record that is not one."""
    steps: list[Step] = []
    before: Ids = ()
    for item in data["steps"]:
        prompt = _restore("prompt", item, before)
        response = tuple(item["response"])
        steps.append(
            Step(
                prompt,
                response,
                tuple(item["logprobs"]),
                tuple(tuple(a) for a in item["allowed"]),
                item["action"],
                item["valid"],
                item["observation"],
            )
        )
        before = prompt + response
    return Trajectory(
        data["task_id"],
        data["slot"],
        data["rollout"],
        data["seed"],
        data["first_observation"],
        tuple(steps),
        data["outcome"],
        Status(data["status"]),
        data["error"],
    )


def judgements_to_json(judgements: Sequence[Judgement]) -> list[Json]:
    """The judgements of one trajectory; each question is stored as what it adds to the one before."""
    records = []
    before: Ids = ()
    for judgement in judgements:
        votes = [
            {
                "verdict": v.verdict,
                "reasoning": v.reasoning,
                "response": list(v.response_ids),
                "logprobs": list(v.logprobs),
            }
            for v in judgement.votes
        ]
        records.append({**_delta("prompt", judgement.prompt_ids, before), "votes": votes})
        before = judgement.prompt_ids
    return records


def judgements_from_json(data: Sequence[Mapping[str, Json]]) -> tuple[Judgement, ...]:
    """Inverse of `judgements_to_json`."""
    result = []
    before: Ids = ()
    for item in data:
        prompt = _restore("prompt", item, before)
        votes = tuple(
            Vote(v["verdict"], v["reasoning"], tuple(v["response"]), tuple(v["logprobs"]))
            for v in item["votes"]
        )
        result.append(Judgement(prompt, votes))
        before = prompt
    return tuple(result)


def _delta(name: str, ids: Ids, before: Ids) -> dict[str, Json]:
    """`kept` ids of what came before, then the rest."""
    kept = 0
    for a, b in zip(ids, before, strict=False):
        if a != b:
            break
        kept += 1
    return {f"{name}_kept": kept, f"{name}_added": list(ids[kept:])}


def _restore(name: str, item: Mapping[str, Json], before: Ids) -> Ids:
    kept = item[f"{name}_kept"]
    if not 0 <= kept <= len(before):
        raise ValueError(f"{name}_kept = {kept}: the turn before has {len(before)} ids")
    return before[:kept] + tuple(item[f"{name}_added"])
