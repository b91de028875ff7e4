"""Which prompts are read together: equal prompts and groups share a trunk, and trunks are cut into chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlanything.engines.decode import Draft

Ids = tuple[int, ...]


@dataclass(slots=True)
class Chunk:
    """Rows that are decoded together: draft i sees `visible[i]` tokens of `trunks[trunk_of[i]]`, then `pending`."""

    trunks: list[Ids] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    trunk_of: list[int] = field(default_factory=list)
    visible: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Cluster:
    trunk: Ids
    drafts: list[Draft]
    visible: list[int]


def chunks(drafts: Sequence[Draft], max_rows: int) -> Iterator[Chunk]:
    """Chunks of at most `max_rows` rows, long trunks first, so that little of a chunk is padding.

    Sets each draft's `pending` to what follows the visible part of its trunk (never nothing).
    """
    chunk = Chunk()
    for cluster in sorted(_clusters(drafts), key=lambda cluster: -len(cluster.trunk)):
        for start in range(0, len(cluster.drafts), max_rows):
            members = cluster.drafts[start : start + max_rows]
            if len(chunk.drafts) + len(members) > max_rows:
                yield chunk
                chunk = Chunk()
            chunk.trunk_of += [len(chunk.trunks)] * len(members)
            chunk.trunks.append(cluster.trunk)
            chunk.drafts += members
            chunk.visible += cluster.visible[start : start + max_rows]
    if chunk.drafts:
        yield chunk


def _clusters(drafts: Sequence[Draft]) -> list[_Cluster]:
    """Drafts of one group, or with equal prompts, with the trunk that they share."""
    members: dict[str | Ids, list[Draft]] = {}
    for draft in drafts:
        group = "" if draft.request.session else draft.request.group
        members.setdefault(group or draft.request.prompt_ids, []).append(draft)
    return [_cluster(group) for group in members.values()]


def _cluster(drafts: list[Draft]) -> _Cluster:
    longest = max((draft.request.prompt_ids for draft in drafts), key=len)
    shared: dict[Ids, int] = {}
    for draft in drafts:
        prompt = draft.request.prompt_ids
        if prompt not in shared:
            shared[prompt] = min(common_prefix(prompt, longest), len(prompt) - 1)
    visible = [shared[draft.request.prompt_ids] for draft in drafts]
    for draft, seen in zip(drafts, visible, strict=True):
        draft.pending[:] = draft.request.prompt_ids[seen:] + tuple(draft.ids)
    return _Cluster(longest[: max(visible)], drafts, visible)


def common_prefix(left: Ids, right: Ids) -> int:
    """How many first tokens are equal: bisection over slice comparisons, which run at C speed."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low
