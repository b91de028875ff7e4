"""Buffers to test with: small builders, one run with everything in it, and random histories that hold together."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st

from rlanything import cli
from rlanything.buffer import (
    Event,
    Lineage,
    TaskBuffer,
    Version,
    append_events,
    events_path,
    read_events,
    read_snapshot,
    snapshot_path,
    write_snapshot,
)
from rlanything.buffer.fields import canonical_line
from rlanything.buffer.storage import snapshot_iteration
from rlanything.buffer.views.cli.commands import add_commands
from rlanything.buffer.views.find.runs import open_run
from rlanything.compare.cli import diff_of_arms
from rlanything.core.types import Direction, EventKind, Task

HARDER, EASIER = Direction.HARDER, Direction.EASIER
PROPOSED, INVALID = EventKind.PROPOSED, EventKind.INVALID
REJECTED, ACCEPTED = EventKind.REJECTED, EventKind.ACCEPTED

NASTY = "say [bold]hi[/bold] \x1b[2J\x1b]0;title\x07 \u202egnp.exe \x9b31m\nand a second line"


def command(*words, root="."):
    """Run `rlanything buffer WORDS`; its exit code."""
    parser = cli.plain_parser()
    add_commands(
        parser.add_subparsers(required=True), lambda folder: (1, f"replayed {folder.name}"), diff_of_arms
    )
    return cli.answer(parser, ["--root", str(root), "buffer", *words])


def task(n, instruction=None, **metadata):
    return Task("toy", instruction or f"put thing {n} in the box", {"goal": {"n": n}, "rooms": 2}, metadata)


def event(buffer, slot, kind, new=None, *, iteration=1, way=HARDER, before=0.9, after=None, **rest):
    if after is None and kind is ACCEPTED:
        after = 0.5
    parent = buffer.head(slot).task_id
    return Event(kind, slot, iteration, way, parent, before, new, after, **rest)


def story():
    """(N, events of iteration N - 1, the buffer that iteration N starts with): of every kind of event there is one."""
    buffer = TaskBuffer.start([task(n, split="train", level=n) for n in range(5)])
    told = [(0, [], buffer)]
    q1, q2, q3, q4 = task(11, level=7), task(12, NASTY), task(13), task(14)
    critic = "Trajectory 2 opened the fridge twice.\nThe mug was in sight."
    first = [
        event(
            buffer, 1, PROPOSED, q1, iteration=0, critic=critic, reply="goal: 11", seed=-7, proposer="adapter"
        ),
        event(buffer, 2, PROPOSED, q2, way=EASIER, before=0.0, iteration=0),
        event(
            buffer,
            3,
            INVALID,
            way=EASIER,
            before=0.125,
            iteration=0,
            reason="the reply names no goal",
            reply=NASTY,
        ),
    ]
    buffer = buffer.apply(first)
    told.append((1, first, buffer))
    second = [
        event(buffer, 1, ACCEPTED, q1, iteration=1, after=0.5, critic=critic),
        event(
            buffer,
            2,
            REJECTED,
            q2,
            iteration=1,
            way=EASIER,
            before=0.0,
            after=0.0,
            reason="0.000 is not above 0.000",
        ),
    ]
    buffer = buffer.apply(second)
    told += [(2, second, buffer), (3, [], buffer)]
    last = [
        event(buffer, 1, ACCEPTED, q3, iteration=3, before=0.875, after=0.25, critic="Too easy by now."),
        event(buffer, 4, ACCEPTED, q2, iteration=3, before=1.0, after=0.75),
        event(buffer, 0, PROPOSED, q4, iteration=3, before=1.0),
    ]
    told.append((4, last, buffer.apply(last)))
    return told


def write_story(run: Path) -> Path:
    for number, events, buffer in story():
        record(run / "buffer", number, buffer, events)
    return run


def record(folder: Path, number, buffer, events=()):
    """Write snapshot `number` as a run does, over its first one, and the events that led to it."""
    path = events_path(folder)
    append_events(path, events, buffer.digest)
    if number == 0:
        write_snapshot(buffer, snapshot_path(folder, 0))
    else:
        head = read_events(path).heads[-1]
        write_snapshot(
            buffer, snapshot_path(folder, number), read_snapshot(snapshot_path(folder, 0)), events=head
        )


def rechained(folder: Path) -> None:
    """What a careful forger does: every link and head is computed again, so that all of them fit."""
    path = events_path(folder)
    header, *lines = path.read_bytes().splitlines(keepends=True)
    events = [Event.from_json(json.loads(line)) for line in lines]
    path.unlink()
    append_events(path, events, json.loads(header)["start"])
    heads = read_events(path).heads
    for snapshot in sorted(folder.glob("iter_*.jsonl"))[1:]:
        first, rest = snapshot.read_bytes().split(b"\n", 1)
        before = sum(event.iteration < snapshot_iteration(snapshot.name) for event in events)
        stated = {**json.loads(first), "events": heads[before]}
        snapshot.write_bytes(canonical_line(stated) + b"\n" + rest)


relaxed = settings(deadline=None, max_examples=30)
"""A loaded machine is no failure."""
shares = st.floats(0, 1)
texts = st.text(max_size=12)
payloads = st.dictionaries(texts, st.none() | st.booleans() | st.integers() | texts, max_size=2)


@st.composite
def histories(draw, max_events=8):
    """The tasks of a buffer and a list of events that follow from each other, iterations never falling."""
    start = [Task("toy", draw(texts), {"n": n, **draw(payloads)}) for n in range(draw(st.integers(1, 4)))]
    buffer, events, iteration, known = TaskBuffer.start(start), [], 0, list(start)
    for n in range(draw(st.integers(0, max_events))):
        iteration += draw(st.integers(0, 1))
        slot, kind = draw(st.sampled_from(buffer.slots)), draw(st.sampled_from(EventKind))
        fresh = Task("toy", draw(texts), {"n": 100 + n})
        new = fresh if kind is ACCEPTED else draw(st.sampled_from([fresh, *known]))
        after = draw(shares) if kind in (ACCEPTED, REJECTED) else None
        words = {"critic": draw(texts), "reply": draw(texts), "seed": draw(st.integers())}
        way, before = draw(st.sampled_from(Direction)), draw(shares)
        made = event(
            buffer, slot, kind, new, iteration=iteration, way=way, before=before, after=after, **words
        )
        events.append(made)
        known.append(fresh)
        buffer = buffer.apply([made])
    return start, events


def kitchen(slot, thing, place, copies=1):
    """A household task, told as the families of this project tell theirs."""
    payload = {
        "task_type": "put",
        "scene": 1 + slot % 4,
        "goal": {"object": thing, "receptacle": place},
        "knobs": {"copies": copies, "hidden": slot % 3 == 0},
    }
    metadata = {"level": "easy", "seed": 1000 + slot}
    return Task("kitchen", f"put {'two' if copies > 1 else 'a'} {thing} in the {place}", payload, metadata)


def house():
    """A start of twelve slots, and two runs from it: events by iteration."""
    things, places = ("mug", "apple", "knife"), ("cabinet", "fridge")
    start = TaskBuffer.start(kitchen(n, things[n % 3], places[n % 2]) for n in range(12))
    critic = "opened the fridge twice x3; looked away x1"
    one = [
        [
            event(start, n, PROPOSED, kitchen(n, "mug", "shelf", 2), before=acc, critic=critic)
            for n, acc in ((0, 1.0), (3, 0.875), (6, 1.0))
        ],
        [
            event(start, 0, ACCEPTED, kitchen(0, "mug", "shelf", 2), before=1.0, after=0.5, critic=critic),
            event(start, 3, ACCEPTED, kitchen(3, "mug", "shelf", 2), before=0.875, after=0.25, critic=critic),
            event(
                start,
                6,
                REJECTED,
                kitchen(6, "mug", "shelf", 2),
                before=1.0,
                after=0.0,
                reason="0.000 is not above 0",
            ),
            event(start, 5, INVALID, way=EASIER, before=0.0, reason="there is no spoon in the room"),
        ],
    ]
    two = [
        [event(start, 0, ACCEPTED, kitchen(0, "mug", "shelf", 2), before=1.0, after=0.75)],
        [
            event(start, 3, ACCEPTED, kitchen(3, "mug", "drawer"), way=EASIER, before=0.0, after=0.5),
            event(start, 8, ACCEPTED, kitchen(8, "knife", "drawer"), way=EASIER, before=0.125, after=0.5),
        ],
    ]
    return start, one, two


def write_house(root: Path) -> None:
    """Two runs of `house` below `root`/runs."""
    start, *runs = house()
    for name, iterations in zip(("full/seed-0", "full/seed-1"), runs, strict=True):
        folder, buffer = root / "runs" / name / "buffer", start
        record(folder, 0, buffer)
        for number, events in enumerate(iterations):
            events = [replace(e, iteration=number) for e in events]
            buffer = buffer.apply(events)
            record(folder, number + 1, buffer, events)


def write_rollouts(run: Path) -> None:
    """The rollouts that the events of a run tell of, in the format of a run's folder; slot 9 is measured besides."""
    opened = open_run(run)
    for iteration in opened.iterations[:-1]:
        groups = [(9, opened.at(iteration).head(9).task_id, False, 4)]
        for e in (e for e in opened.events if e.iteration == iteration):
            decided = e.kind in (ACCEPTED, REJECTED)
            accuracy = e.accuracy if decided else e.parent_accuracy
            groups.append((e.slot, e.task.task_id if decided else e.parent_id, decided, round(8 * accuracy)))
        lines = [line for group in groups for line in rollout_lines(*group)]
        path = run / "rollouts" / f"iter_{iteration + 1:04d}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def rollout_lines(slot, task_id, proposal, solved, count=8):
    """Episodes of one task, and one that crashed."""
    outcomes = [(1, "ok")] * solved + [(-1, "truncated")] * (count - solved) + [(-1, "env_error")]
    for number, (outcome, status) in enumerate(outcomes):
        trajectory = {
            "slot": slot,
            "task_id": task_id,
            "outcome": outcome,
            "status": status,
            "rollout": number,
        }
        yield (
            json.dumps({"proposal": proposal, "trains": True, "trajectory": trajectory, "judgements": []})
            + "\n"
        )


def patched(buffer, rows):
    """The second buffer of a comparison, from the first and the slots' patches. `ValueError` for another first."""
    lineages = {lineage.slot: lineage for lineage in buffer.lineages}
    for row in rows:
        slot, change, old = row["slot"], row["patch"], lineages.pop(row["slot"], None)
        if row["status"] == "removed":
            continue
        versions, tried = (old.versions, old.tried) if old else ((), frozenset())
        if [v.task.task_id for v in versions[change["kept"] :]] != change["gone"]:
            raise ValueError(f"slot {slot}: the difference was not made from this buffer")
        fresh = tuple(Version.from_json(version) for version in change["versions"])
        tried = (tried - set(change["tried_gone"])) | set(change["tried_new"])
        lineages[slot] = Lineage(slot, (*versions[: change["kept"]], *fresh), tried)
    return TaskBuffer(tuple(lineages.values()))
