"""Rows in the dataset formats of TRL: language modelling, preference, unpaired preference, stepwise supervision.

Each function makes the rows of one task. A prompt is a list of messages, and a completion is one reply, so that
nothing but what the policy wrote is learnt. `source` says where a row comes from; trainers leave it out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlanything.core.types import Json, Step
from rlanything.exports.reading import Group, NothingChosen, Reader, Rollout
from rlanything.exports.tables import step_vote
from rlanything.exports.texts import write_rows

Row = dict[str, Json]
Rows = Callable[[Group], Iterator[Row]]
Read = tuple[tuple[int, ...], tuple[str, ...]]


def sft(group: Group) -> Iterator[Row]:
    """Whole conversations; where each step has a prompt of its own, one for each step."""
    for one in group.rollouts:
        for step, messages in one.turns.conversations():
            yield {"messages": messages, "source": {**one.where, "step": step, "reward": one.reward}}


def preference(group: Group) -> Iterator[Row]:
    """The best and the worst rollout by mean reward, at the first step where both read the same and replies differ.

    Rollouts that crashed are left out: that an environment failed says nothing about the replies."""
    counted = [one for one in group.rollouts if one.record.episode.trajectory.counts]
    known = [one for one in counted if one.reward is not None]
    if not known:
        return
    best, worst = max(known, key=_reward), min(known, key=_reward)
    step = _parting(best, worst)
    if _reward(best) > _reward(worst) and step is not None:
        yield _pair((best, step, _reward(best)), (worst, step, _reward(worst)))


def vote_preference(group: Group) -> Iterator[Row]:
    """Replies to the same prompt, the best voted and the worst voted, where one was voted good and the other bad."""
    met: dict[Read, list[tuple[Rollout, int, float]]] = defaultdict(list)
    for one in group.rollouts:
        for k, step in enumerate(one.page["steps"]):
            vote = step_vote(step)
            if vote is not None:
                met[_read(one.record.episode.trajectory.steps[k])].append((one, k, vote))
    for tried in met.values():
        best, worst = max(tried, key=_vote), min(tried, key=_vote)
        if best[2] > 0 > worst[2] and _reply(best) != _reply(worst):
            yield _pair(best, worst)


def unpaired(group: Group) -> Iterator[Row]:
    """Single replies: good where most votes say so, a program where it is right. Without a majority there is no row."""
    for one in group.rollouts:
        for k, step in enumerate(one.page["steps"]):
            good = _right(one) if one.page["tests"] else _majority(step)
            if good is not None:
                prompt, completion = one.turns.prompt(k), one.turns.completion(k)
                source = {**one.where, "step": k}
                yield {"prompt": prompt, "completion": completion, "label": good, "source": source}


def stepwise(group: Group) -> Iterator[Row]:
    """Episodes as text with a label for each step. A step begins with what the environment answered before it.

    A step is good where most votes say so. A row ends before a step without a readable vote."""
    for one in group.rollouts:
        votes = [step_vote(step) for step in one.page["steps"]]
        judged = next((k for k, vote in enumerate(votes) if vote is None), len(votes))
        if judged:
            turns, seen = one.turns, ["", *(step["observation"] + "\n" for step in one.page["steps"])]
            prompt = "\n".join(message["content"] for message in turns.opening)
            completions = [seen[k] + turns.replies[k] for k in range(judged)]
            labels = [vote is not None and vote > 0 for vote in votes[:judged]]
            yield {"prompt": prompt, "completions": completions, "labels": labels, "source": one.where}


def writer(rows: Rows) -> Callable[[Path, Reader, Sequence[int]], tuple[dict[str, int], list[str]]]:
    """The function that writes one kind of rows as train.jsonl."""

    def write(folder: Path, reader: Reader, numbers: Sequence[int]) -> tuple[dict[str, int], list[str]]:
        groups = (group for _, found in reader.iterations(numbers) for group in found)
        count = write_rows(folder / "train.jsonl", (row for group in groups for row in rows(group)))
        if not count:
            raise NothingChosen(
                f"{reader.run.name}: no row of this format in what was chosen: nothing is written"
            )
        return {"rows": count}, ["configs:", "- config_name: default", "  data_files: train.jsonl"]

    return write


def _pair(good: tuple[Rollout, int, float], bad: tuple[Rollout, int, float]) -> Row:
    (one, step, _), (other, k, _) = good, bad
    source = {name: {**r.where, "step": at, "value": value} for name, (r, at, value) in zip(
        ("chosen", "rejected"), (good, bad), strict=True)}  # fmt: skip
    replies = {"chosen": one.turns.completion(step), "rejected": other.turns.completion(k)}
    return {"prompt": one.turns.prompt(step), **replies, "source": source}


def _parting(one: Rollout, other: Rollout) -> int | None:
    """The first step at which both read the same and replied with another text; None where there is none."""
    pairs = zip(one.record.episode.trajectory.steps, other.record.episode.trajectory.steps, strict=False)
    for k, (a, b) in enumerate(pairs):
        if _read(a) != _read(b):
            return None
        if one.turns.replies[k] != other.turns.replies[k]:
            return k
    return None


def _read(step: Step) -> Read:
    """What the policy read: tokens, and the pictures that some of them stand for: all pictures have the same tokens."""
    return step.prompt_ids, step.prompt_images


def _right(one: Rollout) -> bool | None:
    for row in one.page["tests"]["programs"]:
        if row["rollout"] == one.page["rollout"]:
            right: bool | None = row["right"]
            return right
    return None


def _majority(step: Mapping[str, Any]) -> bool | None:
    vote = step_vote(step)
    return None if not vote else vote > 0


def _reward(one: Rollout) -> float:
    assert one.reward is not None
    return one.reward


def _vote(tried: tuple[Rollout, int, float]) -> float:
    return tried[2]


def _reply(tried: tuple[Rollout, int, float]) -> str:
    return tried[0].turns.replies[tried[1]]
