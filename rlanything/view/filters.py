"""What rollouts can be filtered by: of each filter a bit in the index, and what it means by kind of reward model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlanything.core.types import Status

Page = Mapping[str, Any]
CRASHED = (Status.ENV_ERROR.value, Status.TIMEOUT.value)


def _failed(group: Page, rollout: Page) -> bool:
    return rollout["outcome"] < 0 and rollout["status"] not in CRASHED


def _disputed(group: Page, rollout: Page) -> bool:
    if group["tests"]:
        return len({result for result in _written(group, rollout) if result is not None}) > 1
    return any(len(_verdicts(step) - {None}) > 1 for step in rollout["steps"])


def _against(group: Page, rollout: Page) -> bool:
    if group["tests"]:
        program = _program(group, rollout)
        pairs = zip(_written(group, rollout), group["tests"]["written"], strict=False)
        return program.get("right") is not None and any(
            result is not None and test["right"] is False and result != program["right"]
            for result, test in pairs
        )
    return any("good" in step and (-1 if step["good"] else 1) in _verdicts(step) for step in rollout["steps"])


def _invalid(group: Page, rollout: Page) -> bool:
    written = group["tests"]["written"] if group["tests"] else ()
    untested = bool(written) and not any(test["text"] for test in written)
    return untested or any(not step["valid"] or None in _verdicts(step) for step in rollout["steps"])


def _errors(group: Page, rollout: Page) -> bool:
    return rollout["status"] in CRASHED


def _accepted(group: Page, rollout: Page) -> bool:
    return bool(group["rewrite"]) and group["rewrite"]["decision"] == "accepted"


def _trains(group: Page, rollout: Page) -> bool:
    return bool(rollout["trains_policy"])


@dataclass(frozen=True)
class Filter:
    """What rollouts can be filtered by. label: on the page. votes, tests: what it means by kind of reward model."""

    test: Callable[[Page, Page], bool]
    label: str
    votes: str
    tests: str


FILTERS: Mapping[str, Filter] = {
    "failed": Filter(
        *(_failed, "failed", "the episode ended without success", "the program fails a test of the task")
    ),
    "disputed": Filter(
        *(_disputed, "disputed", "votes on one step differ"),
        "the program passes some written tests and fails others",
    ),
    "against": Filter(
        *(_against, "against the environment", "a vote says the opposite of the environment"),
        "a written test that is wrong misjudges it: it is right and fails, or it is wrong and passes",
    ),
    "invalid": Filter(
        *(_invalid, "invalid", "a reply without an action, or a vote without a verdict"),
        "a reply without a program, or a task of which no reply has a test",
    ),
    "errors": Filter(_errors, "crashed", "the environment crashed or did not answer", "the sandbox failed"),
    "accepted": Filter(
        *(_accepted, "of an accepted rewrite", "the task is a rewrite, and it was accepted"),
        "the problem is a rewrite, and it was accepted",
    ),
    "trains": Filter(_trains, "training", "it trained the policy", "it trained the policy"),
}
"""By its name in links. Its bit in `flags` is its position."""


def _verdicts(step: Page) -> set[int | None]:
    return {vote["verdict"] for vote in step.get("votes", ())}


def _written(group: Page, rollout: Page) -> Sequence[bool | None]:
    results: Sequence[bool | None] = _program(group, rollout).get("written", ())
    return results


def _program(group: Page, rollout: Page) -> Page:
    programs = group["tests"]["programs"]
    return next((one for one in programs if one["rollout"] == rollout["rollout"]), {})
