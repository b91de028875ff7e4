"""What a run keeps between iterations is enough to go on: a resumed loop still tries what was proposed before."""

from __future__ import annotations

import json

from scripted import World, task

from rlanything.buffer import read_snapshot, write_snapshot
from rlanything.core.records.rollouts import proposal_from_json, proposal_to_json
from rlanything.core.types import Direction, EventKind, Proposal
from rlanything.loop.batch import LoopState


def world() -> World:
    """Level 1 is always won and asks for level 7, which is won half of the time; level 2 is as it should be."""
    return World({1: 4, 2: 2, 7: 2}, adapter=lambda _: "level 7")


def stored(state: LoopState, folder) -> LoopState:
    """The state as a killed process leaves it: JSON and a snapshot of the buffer."""
    write_snapshot(state.buffer, folder / "buffer.jsonl")
    text = json.dumps(
        [state.iteration, state.cursor, state.tokens, [proposal_to_json(p) for p in state.pending]]
    )
    iteration, cursor, tokens, pending = json.loads(text)
    buffer = read_snapshot(folder / "buffer.jsonl")
    return LoopState(iteration, buffer, cursor, tuple(proposal_from_json(p) for p in pending), tokens)


def test_a_resumed_loop_decides_the_proposals_that_were_pending(tmp_path):
    first = world()
    before = first.loop.collect(first.start(task(1), task(2))).state
    assert [p.task for p in before.pending] == [task(7)]
    resumed = world().loop.collect(stored(before, tmp_path))
    assert [e.kind for e in resumed.events] == [EventKind.ACCEPTED]
    assert resumed.state.buffer.head(0) == task(7)


def test_a_resumed_loop_and_one_that_was_never_stopped_collect_the_same(tmp_path):
    resumed, alone = world(), world()
    kept = state = alone.start(task(1), task(2))
    for _ in range(4):
        kept, state = resumed.loop.collect(stored(kept, tmp_path)), alone.loop.collect(state)
        assert kept == state
        kept, state = kept.state, state.state
    assert state.buffer.accepted == 1


def test_a_proposal_survives_json_with_and_without_a_task():
    for made in (task(7), None):
        proposal = Proposal(
            3, Direction.EASIER, "parent", 0.125, "critic", "prompt", "reply → 猫", 2**62, 5, made, "why"
        )
        assert proposal_from_json(json.loads(json.dumps(proposal_to_json(proposal)))) == proposal
