"""What differs between a recorded episode, or judgement, and the one that was played again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlanything.core.printable import counted
from rlanything.core.types import Judgement, Step, Trajectory
from rlanything.loop.group import CONTEXT_FULL

LONGEST = 100
"""Characters of a value in a message."""
Difference = tuple[str, object, object]
"""What it is, the recorded value, and the one that came out again."""


def trajectories(stored: Trajectory, played: Trajectory) -> str:
    """The first difference; '' for none.

    Of an episode that the environment broke off, by an error or for want of time, only what came before is compared:
    neither happens again for sure. Where it breaks off now, and did not in the run, the message says why.
    """
    return _first(_of_trajectory(stored, played))


def _first(differences: Iterator[Difference]) -> str:
    return next((words(*difference) for difference in differences), "")


def _of_trajectory(stored: Trajectory, played: Trajectory) -> Iterator[Difference]:
    yield from _beginnings(stored, played)
    for number, (step, again) in enumerate(zip(stored.steps, played.steps, strict=False)):
        yield from _at(number, _steps(step, again))
    if stored.counts:
        yield from _ends(stored, played)


def _at(number: int, differences: Iterator[Difference]) -> Iterator[Difference]:
    return ((f"step {number}, {what}", one, other) for what, one, other in differences)


def _beginnings(stored: Trajectory, played: Trajectory) -> Iterator[Difference]:
    yield from _pairs(("the version of the weights", stored.version, played.version))
    if not (played.counts or played.first_observation):  # it did not begin
        yield from _broken(stored, played)
    elif stored.counts or stored.steps:
        yield from _pairs(
            ("the first observation", stored.first_observation, played.first_observation),
            ("the first observation's pictures", stored.first_images, played.first_images),
        )


def _steps(stored: Step, played: Step) -> Iterator[Difference]:
    yield from _pairs(
        ("the prompt", stored.prompt_text, played.prompt_text),
        ("the prompt", stored.prompt_ids, played.prompt_ids),
        ("the prompt's pictures", stored.prompt_images, played.prompt_images),
        ("what is allowed", stored.allowed, played.allowed),
        ("the text of the response", stored.response_text, played.response_text),
        ("the action", stored.action, played.action),
        ("whether the response held an action", stored.valid, played.valid),
        ("the observation", stored.observation, played.observation),
        ("the observation's pictures", stored.images, played.images),
    )


def _ends(stored: Trajectory, played: Trajectory) -> Iterator[Difference]:
    yield from _broken(stored, played)
    yield from _pairs(
        ("the number of steps", len(stored.steps), len(played.steps)),
        ("the status", stored.status.value, played.status.value),
        ("the outcome", stored.outcome, played.outcome),
        ("whether the context was full", stored.error == CONTEXT_FULL, played.error == CONTEXT_FULL),
    )


def _broken(stored: Trajectory, played: Trajectory) -> Iterator[Difference]:
    """Of an episode that did not break off in the run, and does now."""
    if stored.counts and not played.counts:
        steps = counted(len(played.steps), "step")
        yield "the status", stored.status.value, f"{played.status.value} after {steps}: {played.error}"


def judgements(stored: Sequence[Judgement], played: Sequence[Judgement]) -> str:
    """The first difference of the judgements on an episode; '' for none."""
    return _first(_of_judgements(stored, played))


def _of_judgements(stored: Sequence[Judgement], played: Sequence[Judgement]) -> Iterator[Difference]:
    for number, (one, again) in enumerate(zip(stored, played, strict=False)):
        yield from _at(number, _judgement(one, again))
    yield from _pairs(("the number of judged steps", len(stored), len(played)))


def _judgement(stored: Judgement, played: Judgement) -> Iterator[Difference]:
    yield from _pairs(
        ("the reward model's prompt", stored.prompt_ids, played.prompt_ids),
        ("the reward model's pictures", stored.images, played.images),
        ("the number of votes", len(stored.votes), len(played.votes)),
    )
    for number, (vote, again) in enumerate(zip(stored.votes, played.votes, strict=True), 1):
        yield from _pairs(
            (f"the verdict of vote {number}", vote.verdict, again.verdict),
            (f"the reasoning of vote {number}", vote.reasoning, again.reasoning),
        )


def _pairs(*values: Difference) -> Iterator[Difference]:
    return (value for value in values if value[1] != value[2])


def words(what: str, stored: object, played: object) -> str:
    """A difference in words. Of long values the part around the first difference is shown."""
    if isinstance(stored, str | tuple) and isinstance(played, str | tuple):
        start = next(
            (n for n, (a, b) in enumerate(zip(stored, played, strict=False)) if a != b),
            min(len(stored), len(played)),
        )
        if max(len(stored), len(played)) > LONGEST:
            first = max(0, start - LONGEST // 2)
            unit = "character" if isinstance(stored, str) else "item"
            stored, played = stored[first : first + LONGEST], played[first : first + LONGEST]
            what = f"{what}, from {unit} {first} on,"
    return f"{what} is {stored!r:.400}, played again {played!r:.400}"
