"""Proposals as JSON: what a checkpoint keeps of tasks that wait for their rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from rlanything.core.types import Direction, Json, Proposal, Task


def proposal_to_json(proposal: Proposal) -> dict[str, Json]:
    """The proposal with its whole task."""
    data = {f.name: getattr(proposal, f.name) for f in fields(proposal)}
    return {**data, "direction": proposal.direction.value, "task": proposal.task and proposal.task.to_json()}


def proposal_from_json(data: Mapping[str, Json]) -> Proposal:
    """Inverse of `proposal_to_json`."""
    task = Task.from_json(data["task"]) if data["task"] else None
    return Proposal(**{**data, "direction": Direction(data["direction"]), "task": task})
