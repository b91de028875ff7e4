"""Pages of made-up runs, of both kinds of reward model, whose texts a test chooses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rlanything.view.iteration import IterationPage
from rlanything.view.writing import Made, Source, free, write

Text = Callable[[str], str]
SETTINGS = {
    **{"run": "full/seed-0", "identity": "f00d/full/seed-0", "state": "finished", "version": "0"},
    **{"lambda": 0.5, "uses_outcome": True, "trains_reward_model": True},
}
SAME: Text = str
NOTES = "rlanything view notes 1"
"""The form of a file of notes, as pages export them."""


def read(folder: Path, name: str) -> Any:
    """A part of a page."""
    return json.loads(gzip.decompress((folder / "data" / f"{name}.json.gz").read_bytes()))


def votes(step: int, text: Text, verdicts: tuple[int | None, ...]) -> list[dict[str, Any]]:
    return [
        {
            "verdict": verdict,
            "reason": text(f"reason{step} {'long ' * 30 if j == 1 else ''}"),
            "reply": text(f"reply{step}"),
            "tokens": 2,
            "advantage": 0.25 if j == 0 else None,
            "weight": 0.5 if j == 0 else None,
            "trains": j == 0,
        }
        for j, verdict in enumerate(verdicts)
    ]


def step(
    k: int, text: Text, *, valid: bool = True, verdicts: tuple[int | None, ...] = (1, 1)
) -> dict[str, Any]:
    counted = [verdict for verdict in verdicts if verdict]
    return {
        "response": text(f"go{k}<|end|>"),
        "action": text(f"go to place{k}"),
        "valid": valid,
        "observation": text(f"seen{k} mug"),
        "advantage": 0.5 + k,
        "votes": votes(k, text, verdicts),
        "mean_vote": sum(counted) / max(1, len(verdicts)),
        "reward": 1 + 0.5 * sum(counted) / max(1, len(verdicts)),
        "consistency_reward": 1.0,
        "good": True,
        "reason": text("right way"),
        "commands": [text(f"go to place{k}"), text("look")],
    }


def rollout(k: int, text: Text, **changes: Any) -> dict[str, Any]:
    made = {
        "rollout": k,
        "outcome": 1,
        "status": "ok",
        "error": "",
        "trains_policy": True,
        "why_not": "",
        "first_observation": text("a room"),
        "reward": 1.5,
        "advantage": 0.75,
        "steps": [step(0, text), step(1, text)],
    }
    return {**made, **changes}


def task(slot: int, text: Text) -> dict[str, Any]:
    return {
        "task_id": f"{slot:04x}{0:060x}",
        "env": "game",
        "instruction": text(f"bring thing{slot}"),
        "payload": {"key": text("payload")},
        "metadata": {},
    }


def group(slot: int, rollouts: list[dict[str, Any]], text: Text = SAME, **changes: Any) -> dict[str, Any]:
    made = {"slot": slot, "task": task(slot, text), "rewrite": None, "accuracy": 0.5, "tests": None}
    return {**made, "proposal": False, "rollouts": rollouts, **changes}


def tokens(groups: list[dict[str, Any]], text: Text) -> dict[str, Any]:
    return {
        "rollouts": {
            f"{g['slot']}/{int(g['proposal'])}/{r['rollout']}": {
                "steps": [
                    {
                        "prompt": text("prompt"),
                        "read": 5,
                        "ids": [1, 2],
                        "logprobs": [-0.5, -3.0],
                        "allowed": [4, 2],
                    }
                    for _ in r["steps"]
                ],
                "votes": [[{"ids": [1], "logprobs": [-0.1]}] for _ in r["steps"]],
            }
            for g in groups
            for r in g["rollouts"]
        },
        "texts": {"policy": {"1": text("go"), "2": None}, "reward": {"1": text("good")}},
    }


def page(
    iteration: int, groups: list[dict[str, Any]], text: Text = SAME, pictures: dict[str, Path] | None = None
) -> IterationPage:
    return IterationPage(iteration, groups, tokens(groups, text), [], pictures or {})


def past(slot: int, text: Text) -> dict[str, Any]:
    first, second = task(slot, text), task(slot + 1000, text)
    version = {
        "number": 0,
        "iteration": 0,
        "direction": None,
        "accuracy_before": None,
        "accuracy": None,
        "task": first,
    }
    event = {
        "kind": "rejected", "slot": slot, "iteration": 1, "direction": "harder", "parent_id": first["task_id"],
        "parent_accuracy": 0.5, "task": second, "accuracy": 0.25, "critic": text("critic"), "reason": text("too hard"),
        "seed": 1, "reply": text("adapter wrote"), "proposer": "",
    }  # fmt: skip
    return {
        "versions": [
            version,
            {**version, "number": 1, "direction": "harder", "accuracy": 0.5, "task": second},
        ],
        "events": [event],
    }


def steps_run(text: Text = SAME) -> list[IterationPage]:
    """Iteration 0 with slots 3 and 5; iteration 1 with slot 3 and an accepted rewrite of it."""
    lost = rollout(
        1, text, outcome=-1, status="truncated", trains_policy=False, why_not="all its advantages are 0"
    )
    thought = text("a thought of plumbing, so go to place0<|end|>")
    lost["steps"][0] = {**lost["steps"][0], "response": thought}
    disputed = rollout(2, text, steps=[step(0, text, verdicts=(1, -1)), step(1, text)])
    unread = rollout(0, text, steps=[step(0, text, valid=False, verdicts=(None, 1))])
    broken = rollout(1, text, outcome=-1, status="env_error", error=text("crash"), steps=[])
    large = rollout(
        0, text, steps=[{**step(0, text), "advantage": -4.0, "observation": text("a rare zebra")}]
    )
    rewrite = {"direction": "harder", "decision": "accepted", "reason": text("because")}
    rewritten = rollout(0, text)
    rewritten["steps"][0]["votes"][1]["reply"] = text("oracular")
    return [
        page(0, [group(3, [rollout(0, text), lost, disputed], text), group(5, [unread, broken], text)], text),
        page(
            1,
            [group(3, [large], text), group(3, [rewritten], text, proposal=True, rewrite=rewrite)],
            text,
        ),
    ]


def programs_run(text: Text = SAME) -> list[IterationPage]:
    """Two programs, a right and a wrong one; a right written test and a wrong one, and a reply without a test."""
    written = [
        {"text": text("assert f(1) == 2"), "reply": text("r"), "tokens": 3, "right": True, "reward": 1.0,
         "advantage": 0.5, "trains": True},
        {"text": text("assert f(1) == 3"), "reply": text("r"), "tokens": 3, "right": False, "reward": -1.0,
         "advantage": None, "trains": False},
        {"text": "", "reply": text("no test here"), "tokens": 3, "right": None, "reward": None,
         "advantage": None, "trains": False},
    ]  # fmt: skip
    programs = [
        {"rollout": 0, "right": True, "reward": 1.5, "dataset": [True, True], "written": [True, False, None]},
        {
            "rollout": 1,
            "right": False,
            "reward": 0.5,
            "dataset": [True, False],
            "written": [False, False, None],
        },
    ]
    tests = {"programs": programs, "dataset_pass_rates": [1.0, 0.5], "written": written, "agreed": False}
    one = {"response": text("x"), "action": text("print(1)"), "valid": True, "observation": text("1 of 2 tests passed"),
           "advantage": 0.5, "reward": 1.5}  # fmt: skip
    rollouts = [rollout(0, text, steps=[one]), rollout(1, text, outcome=-1, steps=[one])]
    made = page(0, [group(3, rollouts, text, tests=tests)], text)
    for found in made.tokens["rollouts"].values():
        found["votes"] = []
    return [made]


def source(pages: list[IterationPage], text: Text = SAME, **about: Any) -> Source:
    writes = "tests" if any(g["tests"] for p in pages for g in p.groups) else "votes"
    slots = {g["slot"] for p in pages for g in p.groups}
    history = [(slot % 64, {str(slot): past(slot, text)}) for slot in sorted(slots)]
    return Source({**SETTINGS, "writes": writes, **about}, pages, history)


def made(
    place: Path,
    pages: list[IterationPage],
    text: Text = SAME,
    *,
    single: bool = False,
    against: list[IterationPage] | None = None,
    notes: list[dict[str, Any]] | None = None,
    **about: Any,
) -> Made:
    """The page of a made-up run, and of another one `against` it."""
    sources = [source(pages, text, **about)]
    if against is not None:
        other = {"run": text("outcome/seed-0"), "identity": "beef/outcome/seed-0"}
        sources.append(source(against, text, **{**about, **other}))
    return write(free(place, single), sources, single=single, notes=notes or [])
