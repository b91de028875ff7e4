"""Ways to damage one step of a trajectory. Which step it is depends on the trajectory alone, not on who is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rlanything.core.seeds import derive_seed
from rlanything.core.types import Step, Trajectory


@dataclass(frozen=True, slots=True)
class Damaged:
    """A trajectory with damage. steps: the indexes of the steps that are not as they were."""

    trajectory: Trajectory
    steps: tuple[int, ...]


Answer = tuple[str, tuple[str, ...]]
"""What an environment answers to a step: the text, and the names of the pictures."""
Damage = Callable[[Trajectory, Sequence[Answer], random.Random], Damaged | None]
"""(trajectory, answers in other tasks, random numbers) -> the damaged trajectory; None where it cannot be."""


def swapped(trajectory: Trajectory, others: Sequence[Answer], rng: random.Random) -> Damaged | None:
    """Two steps that follow each other change places, with their observations."""
    steps = list(trajectory.steps)
    pairs = [k for k in range(len(steps) - 1) if steps[k].action != steps[k + 1].action]
    if not pairs:
        return None
    k = rng.choice(pairs)
    steps[k], steps[k + 1] = _said(steps[k], steps[k + 1]), _said(steps[k + 1], steps[k])
    return Damaged(replace(trajectory, steps=tuple(steps)), (k, k + 1))


def observation(trajectory: Trajectory, others: Sequence[Answer], rng: random.Random) -> Damaged | None:
    """The environment's answer to one step is one from another task."""
    if not trajectory.steps:
        return None
    k = rng.randrange(len(trajectory.steps))
    answers = [answer for answer in others if answer != _answer(trajectory.steps[k])]
    if not answers:
        return None
    text, images = rng.choice(answers)
    return _with(trajectory, k, replace(trajectory.steps[k], observation=text, images=images))


def action(trajectory: Trajectory, others: Sequence[Answer], rng: random.Random) -> Damaged | None:
    """What the policy wrote in one step is what it wrote in another one; the environment's answer stays."""
    steps = trajectory.steps
    places = [k for k, step in enumerate(steps) if any(other.action != step.action for other in steps)]
    if not places:
        return None
    k = rng.choice(places)
    other = rng.choice([step for step in steps if step.action != steps[k].action])
    return _with(trajectory, k, replace(steps[k], action=other.action, response_text=other.response_text))


KINDS: Mapping[str, Damage] = {"swapped": swapped, "observation": observation, "action": action}


def damage(kind: str, trajectories: Sequence[Trajectory], seed: int) -> list[Damaged | None]:
    """Each trajectory with one damage; None where it has no place for it."""
    answers = {(t.task_id, _answer(step)) for t in trajectories for step in t.steps}
    of_others = {
        task: sorted({answer for other, answer in answers if other != task})
        for task in {t.task_id for t in trajectories}
    }
    found = []
    for trajectory in trajectories:
        others = of_others[trajectory.task_id]
        rng = random.Random(derive_seed(seed, "damage", kind, trajectory.task_id, trajectory.rollout))
        found.append(KINDS[kind](trajectory, others, rng))
    return found


def _answer(step: Step) -> Answer:
    return step.observation, step.images


def _said(place: Step, step: Step) -> Step:
    """What `step` said and got, at the place of another step: the prompt of the place stays."""
    return replace(
        step, prompt_ids=place.prompt_ids, prompt_text=place.prompt_text, prompt_images=place.prompt_images
    )


def _with(trajectory: Trajectory, k: int, step: Step) -> Damaged:
    steps = (*trajectory.steps[:k], step, *trajectory.steps[k + 1 :])
    return Damaged(replace(trajectory, steps=steps), (k,))
