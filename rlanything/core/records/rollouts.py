"""Trajectories, judgements and proposals as JSON records: what a run stores of every rollout.

A prompt is stored as a difference: how many leading ids it shares with the prompt and response of the step before, and
the ids that follow them. A conversation of many turns then takes as much space as its last prompt. The texts of
prompts, where there are any, are stored as differences to the text before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NotRequired

from typing_extensions import TypedDict

from rlanything.core.records.forms import Form, ImageName, Integer, Number, Sign, Text, require_equal, text_of
from rlanything.core.types import (
    Direction,
    Json,
    Judgement,
    Lesson,
    Proposal,
    Status,
    Step,
    Task,
    Trajectory,
    Vote,
)

Ids = tuple[int, ...]


StatusForm: Any = text_of(Status)


class StepForm(TypedDict):
    """One turn of a stored trajectory."""

    prompt_kept: Integer
    prompt_added: list[Integer]
    response: list[Integer]
    logprobs: list[Number]
    allowed: list[list[Integer]]
    action: Text
    valid: bool
    observation: Text
    text_kept: NotRequired[Integer]
    text_added: NotRequired[Text]
    response_text: NotRequired[Text]
    images: NotRequired[list[ImageName]]
    prompt_images: NotRequired[list[ImageName]]


class TrajectoryForm(TypedDict):
    """A stored trajectory."""

    task_id: Text
    slot: Integer
    rollout: Integer
    seed: Integer
    first_observation: Text
    outcome: Sign
    status: StatusForm
    error: Text
    first_images: NotRequired[list[ImageName]]
    version: NotRequired[Integer]
    steps: list[StepForm]


class VoteForm(TypedDict):
    """A stored vote."""

    verdict: Sign | None
    reasoning: Text
    response: list[Integer]
    logprobs: list[Number]


class JudgementForm(TypedDict):
    """The stored votes on one step."""

    prompt_kept: Integer
    prompt_added: list[Integer]
    images: NotRequired[list[ImageName]]
    votes: list[VoteForm]


class LessonForm(TypedDict):
    """What a question taught, as a run stores it."""

    advantages: list[Number | None]
    weight: Number


_TRAJECTORY = Form(TrajectoryForm)
_JUDGEMENTS = Form(list[JudgementForm])
_LESSON = Form(LessonForm | None)


def trajectory_to_json(trajectory: Trajectory) -> dict[str, Json]:
    """The trajectory, token for token."""
    steps = []
    before: Ids = ()
    text = ""
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
                **_texts(step, text),
                **_images("images", step.images),
                **_images("prompt_images", step.prompt_images),
            }
        )
        before, text = step.prompt_ids + step.response_ids, step.prompt_text
    return {
        "task_id": trajectory.task_id,
        "slot": trajectory.slot,
        "rollout": trajectory.rollout,
        "seed": trajectory.seed,
        "first_observation": trajectory.first_observation,
        "outcome": trajectory.outcome,
        "status": trajectory.status.value,
        "error": trajectory.error,
        **_images("first_images", trajectory.first_images),
        **({} if trajectory.version is None else {"version": trajectory.version}),
        "steps": steps,
    }


def trajectory_from_json(data: Mapping[str, Json]) -> Trajectory:
    """Inverse of `trajectory_to_json`. Raises `ValueError` for a record of another form."""
    _TRAJECTORY.check(data)
    steps: list[Step] = []
    before: Ids = ()
    text = ""
    for item in data["steps"]:
        prompt = before[: _kept("prompt", item, before)] + tuple(item["prompt_added"])
        if ("text_added" in item) != ("text_kept" in item):
            raise ValueError(f"steps.{len(steps)}: text_added and text_kept belong together")
        text = text[: _kept("text", item, text)] + item["text_added"] if "text_added" in item else ""
        response = tuple(item["response"])
        require_equal("log-probs", len(item["logprobs"]), "tokens", len(response))
        if item["allowed"]:  # decoding was constrained
            require_equal("lists of allowed ids", len(item["allowed"]), "tokens", len(response))
        steps.append(
            Step(
                prompt,
                response,
                tuple(item["logprobs"]),
                tuple(tuple(a) for a in item["allowed"]),
                item["action"],
                item["valid"],
                item["observation"],
                text,
                item.get("response_text", ""),
                tuple(item.get("images", ())),
                tuple(item.get("prompt_images", ())),
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
        tuple(data.get("first_images", ())),
        data.get("version"),
    )


def judgements_to_json(judgements: Sequence[Judgement]) -> list[Json]:
    """The judgements of one trajectory. Each prompt is stored as a difference to the one before."""
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
        asked = {**_delta("prompt", judgement.prompt_ids, before), **_images("images", judgement.images)}
        records.append({**asked, "votes": votes})
        before = judgement.prompt_ids
    return records


def judgements_from_json(data: Sequence[Mapping[str, Json]]) -> tuple[Judgement, ...]:
    """Inverse of `judgements_to_json`. Raises `ValueError` for records of another form."""
    _JUDGEMENTS.check(data)
    result = []
    before: Ids = ()
    for item in data:
        prompt = before[: _kept("prompt", item, before)] + tuple(item["prompt_added"])
        votes = tuple(
            Vote(v["verdict"], v["reasoning"], tuple(v["response"]), tuple(v["logprobs"]))
            for v in item["votes"]
        )
        for vote in votes:
            if vote.logprobs:  # a reply of an endpoint has none
                require_equal("log-probs", len(vote.logprobs), "tokens", len(vote.response_ids))
        result.append(Judgement(prompt, votes, tuple(item.get("images", ()))))
        before = prompt
    return tuple(result)


def lesson_to_json(lesson: Lesson | None) -> Json:
    """The lesson of a question; null where there is none."""
    return lesson and {"advantages": list(lesson.advantages), "weight": lesson.weight}


def lesson_from_json(data: Json) -> Lesson | None:
    """Inverse of `lesson_to_json`. Raises `ValueError` for a record of another form."""
    _LESSON.check(data)
    return data and Lesson(tuple(data["advantages"]), data["weight"])


def proposal_to_json(proposal: Proposal) -> dict[str, Json]:
    """The proposal with its whole task."""
    data = {f.name: getattr(proposal, f.name) for f in fields(proposal)}
    return {**data, "direction": proposal.direction.value, "task": proposal.task and proposal.task.to_json()}


def proposal_from_json(data: Mapping[str, Json]) -> Proposal:
    """Inverse of `proposal_to_json`."""
    task = Task.from_json(data["task"]) if data["task"] else None
    return Proposal(**{**data, "direction": Direction(data["direction"]), "task": task})


def _images(name: str, names: Sequence[str]) -> dict[str, Json]:
    """The names of pictures, {} where there are none: records without pictures are as they were before these."""
    return {name: list(names)} if names else {}


def _texts(step: Step, before: str) -> dict[str, Json]:
    """The texts of a step, {} where it has none. The prompt is stored as a difference to the one before."""
    if not step.prompt_text:
        return {}
    return {**_delta("text", step.prompt_text, before), "response_text": step.response_text}


def _delta(name: str, new: Ids | str, before: Ids | str) -> dict[str, Json]:
    """`<name>_kept`: how many leading ids (or characters) `new` shares with `before`; `<name>_added`: the rest."""
    kept = 0
    for a, b in zip(new, before, strict=False):
        if a != b:
            break
        kept += 1
    rest = new[kept:]
    return {f"{name}_kept": kept, f"{name}_added": rest if isinstance(rest, str) else list(rest)}


def _kept(name: str, item: Mapping[str, Json], before: Ids | str) -> int:
    kept: int = item[f"{name}_kept"]
    if not 0 <= kept <= len(before):
        unit = "characters" if isinstance(before, str) else "ids"
        raise ValueError(f"{name}_kept = {kept}: the turn before has {len(before)} {unit}")
    return kept
