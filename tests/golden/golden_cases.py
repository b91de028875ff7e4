"""The golden runs: where they start, what is kept of one, and the first number in which two differ.

`start/` holds tasks, three tiny models and the configuration, so that a run here depends on the code alone. `records/`
holds one file an arm: a header, a line for each episode and a line for each iteration.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from rlanything.buffer import read_events, read_snapshot
from rlanything.config import Config, parse
from rlanything.files.records import read_lines
from rlanything.loop.batch import LoopState
from rlanything.loop.iteration import IterationResult, Loop
from rlanything.runs.layout import Layout
from rlanything.stages import train

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
START = HERE / "start"
RECORDS = HERE / "records"
ARMS = ("outcome", "policy", "policy_reward", "full", "step_only")
"""In this order: `step_only` judges with the reward model that `policy_reward` trained."""

TOLERANCE = 1e-4
"""How far a number a may be from the recorded b: |a - b| <= TOLERANCE (1 + |b|). Rounding grows from update to update:
smaller batches on other instruction sets were up to 2.3e-5 away in the third iteration. What is sampled, decided or
counted must be equal."""

ORDER = ("slot", "task", "try", "proposal", "actions", "outcome", "votes", "trains", "events", "buffer",
         "logprobs", "lesson", "metrics")  # fmt: skip
"""Fields by what comes first in an iteration, so that the first difference is the cause of the others."""
SAMPLED = ("actions", "votes", "events")
"""Fields that say which tokens were drawn."""

Line = dict[str, Any]
Place = tuple[str | int, ...]


def configuration(**changes: Any) -> Config:
    """The golden configuration with dotted keys (double underscore for a dot) set to other values."""
    data = yaml.safe_load((START / "params.yaml").read_text())
    for name, value in changes.items():
        *sections, last = name.split("__")
        place = data
        for section in sections:
            place = place[section]
        place[last] = value
    return parse(data)


def project(folder: Path) -> Path:
    """A project that starts where the golden runs start; for `step_only`, run `policy_reward` in it first."""
    for name in ("data", "models"):
        shutil.copytree(START / name, folder / name)
    (folder / "experiments").symlink_to(ROOT / "experiments")
    return folder


def run(root: Path, arm: str, **changes: Any) -> list[Line]:
    """Train an arm in a project; what is kept of its first seed."""
    train.train_arm(configuration(**changes), root, arm)
    return kept(Layout(root).run(arm, 0))


@contextmanager
def killed_in(iteration: int) -> Iterator[None]:
    """Within it a run is interrupted when it begins to collect `iteration`."""
    collect = Loop.collect

    def killed(loop: Loop, state: LoopState, *batch: Any) -> IterationResult:
        if state.iteration == iteration:
            raise KeyboardInterrupt
        return collect(loop, state, *batch)

    with mock.patch.object(Loop, "collect", killed), pytest.raises(KeyboardInterrupt):
        yield


def kept(folder: Path) -> list[Line]:
    """The lines of a finished run: its episodes, and what each iteration decided and measured."""
    lines: list[Line] = []
    events = [event.to_json() for event in read_events(folder / "buffer" / "events.jsonl").events]
    for row in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines()):
        k = row.pop("iteration")
        rollouts = folder / "rollouts" / f"iter_{k + 1:04d}.jsonl.gz"
        lines += [_episode(k, n, record) for n, record in enumerate(read_lines(rollouts, "train"))]
        lines.append(
            {
                "iteration": k,
                "events": [_event(event) for event in events if event["iteration"] == k],
                "buffer": read_snapshot(folder / "buffer" / f"iter_{k + 1:04d}.jsonl").digest,
                "metrics": {name: _short(value) for name, value in sorted(row.items())},
            }
        )
    return lines


def _episode(iteration: int, number: int, record: Mapping[str, Any]) -> Line:
    trajectory, judgements, lesson = record["trajectory"], record["judgements"], record["lesson"]
    votes = [vote for judgement in judgements for vote in judgement["votes"]]
    return {
        "iteration": iteration,
        "episode": number,
        "slot": trajectory["slot"],
        "task": trajectory["task_id"][:16],
        "try": trajectory["rollout"],
        "proposal": record["proposal"],
        "actions": [_ids(step["response"]) for step in trajectory["steps"]],
        "outcome": f"{trajectory['outcome']:+d} {trajectory['status']}",
        "votes": [" | ".join(_ids(v["response"]) for v in j["votes"]) for j in judgements],
        "trains": record["trains"],
        "logprobs": [_short(sum(sum(x["logprobs"]) for x in said)) for said in (trajectory["steps"], votes)],
        "lesson": _short(lesson),
    }


def _event(event: Mapping[str, Any]) -> str:
    what = event["task"]["task_id"][:16] if event["task"] else event["reply"]
    rates = [event["parent_accuracy"], event["accuracy"]]
    measured = " to ".join(f"{rate:.4f}" for rate in rates if rate is not None)
    return f"{event['kind']} slot {event['slot']} {event['direction']}, {measured}: {what}"


def _ids(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids))


def _short(value: Any) -> Any:
    """Nine digits of every float inside: more than the tolerance asks for, fewer than a diff is littered with."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [_short(item) for item in value]
    return {name: _short(item) for name, item in value.items()} if isinstance(value, dict) else value


@dataclass(frozen=True)
class Difference:
    """The first place in which a run is not as recorded."""

    line: Line
    field: str
    place: Place
    recorded: Any
    now: Any

    @property
    def sampled(self) -> bool:
        """Whether another token was drawn."""
        return self.field in SAMPLED

    def __str__(self) -> str:
        where = [f"iteration {self.line['iteration']}"]
        if "episode" in self.line:
            where.append("episode {episode} (slot {slot}, try {try})".format(**self.line))
        where.append(" ".join(str(part) for part in (self.field, *self.place)))
        return f"{', '.join(where)}: recorded {self.recorded!r}, now {self.now!r}"


def first_difference(recorded: Sequence[Line], now: Sequence[Line]) -> Difference | None:
    """The first difference in the order in which an iteration comes about; None where there is none.

    A field or metric that is new is no difference; one that is gone is.
    """
    known, found = ({_key(line): line for line in lines} for lines in (recorded, now))
    for iteration in sorted({k for k, _ in known.keys() | found.keys()}):
        keys = sorted(key for key in known.keys() | found.keys() if key[0] == iteration)
        for key in keys:
            if key not in known or key not in found:
                sides = ("there" if key in side else "missing" for side in (known, found))
                return Difference((known | found)[key], "line", (), *sides)
        for field, key in ((field, key) for field in ORDER for key in keys if field in known[key]):
            for place, old, new in pairs(known[key][field], found[key].get(field, "missing")):
                if not _same(old, new):
                    return Difference(known[key], field, place, old, new)
    return None


def _key(line: Line) -> tuple[int, int]:
    return line["iteration"], line.get("episode", 10**9)


def pairs(old: Any, new: Any, place: Place = ()) -> Iterator[tuple[Place, Any, Any]]:
    """Every leaf of `old` with what is there in `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in old.items():
            yield from pairs(value, new.get(name, "missing"), (*place, name))
    elif isinstance(old, list) and isinstance(new, list):
        for k, value in enumerate(old):
            yield from pairs(value, new[k] if k < len(new) else "missing", (*place, k))
        if len(new) > len(old):
            yield (*place, len(old)), "missing", new[len(old)]
    else:
        yield place, old, new


def _same(old: Any, new: Any) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (old, new))
    if numbers and (isinstance(old, float) or isinstance(new, float)):
        return abs(old - new) <= TOLERANCE * (1.0 + abs(old))
    return bool(old == new)


def read(arm: str) -> tuple[Line, list[Line]]:
    """Header and lines of a record."""
    header, *lines = map(json.loads, (RECORDS / f"{arm}.jsonl").read_text().splitlines())
    return header, lines


def check(arm: str, now: Sequence[Line]) -> None:
    """Raise `AssertionError` with the first difference from the record, and what to do about it."""
    header, recorded = read(arm)
    found = first_difference(recorded, now)
    if found is not None:
        raise AssertionError(explained(arm, header, recorded, found))


def explained(arm: str, header: Line, recorded: Sequence[Line], found: Difference) -> str:
    """The message of a failure."""
    iteration = found.line["iteration"]
    text = [
        f"arm {arm}, {found}",
        f"recorded at {header['revision'][:12]} (torch {header['torch']}, {header['cpu']}) because: {header['reason']}",
    ]
    if found.sampled:
        narrow = next(
            (x["narrowest"] for x in recorded if x["iteration"] == iteration and "narrowest" in x), None
        )
        text.append(
            f"Another token or decision, and all that follows from it. The narrowest draw of iteration {iteration} lay "
            f"{narrow:.1g} of probability from another token, and another processor's rounding moves a draw by about "
            "1e-7 (more in later iterations). If the recorded revision fails here as well, it is this machine."
        )
    text.append(
        "If this change is meant to move numbers, record them again in the commit that does, and say why:\n"
        '    python tests/golden/record.py --reason "..."'
    )
    return "\n".join(text)
