"""Which prompts are read together: equal prompts and prompts of one group share a trunk; chunks limit the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlanything.engines.decode import Draft

Ids = tuple[int, ...]


@dataclass(slots=True)
class Chunk:
    """Rows that are decoded together.

    Prompt p is the first `visible[p]` tokens of `trunks[trunk_of[p]]`, then `suffixes[p]`, then one last token.
    Draft i continues prompt `prompt_of[i]`. Its `pending` begins with the last token of that prompt.
    """

    trunks: list[Ids] = field(default_factory=list)
    trunk_of: list[int] = field(default_factory=list)
    visible: list[int] = field(default_factory=list)
    suffixes: list[Ids] = field(default_factory=list)
    drafts: list[Draft] = field(default_factory=list)
    prompt_of: list[int] = field(default_factory=list)

    def add(self, trunk: Ids, prompts: dict[Ids, list[Draft]]) -> None:
        """Append prompts that share a trunk, with the drafts of each."""
        for prompt, drafts in prompts.items():
            seen = min(common_prefix(prompt, trunk), len(prompt) - 1)
            for draft in drafts:
                draft.pending[:] = prompt[-1:] + tuple(draft.ids)
            self.prompt_of += [len(self.suffixes)] * len(drafts)
            self.drafts += drafts
            self.trunk_of.append(len(self.trunks))
            self.visible.append(seen)
            self.suffixes.append(prompt[seen:-1])
        self.trunks.append(trunk[: max(self.visible[-len(prompts) :])])


def chunks(drafts: Sequence[Draft], max_rows: int) -> Iterator[Chunk]:
    """Chunks of at most `max_rows` rows. Long prompts come first, so that a chunk has little padding."""
    chunk = Chunk()
    for cluster in sorted(_clusters(drafts), key=lambda group: -_longest(group)):
        for start in range(0, len(cluster), max_rows):
            members = cluster[start : start + max_rows]
            if len(chunk.drafts) + len(members) > max_rows:
                yield chunk
                chunk = Chunk()
            prompts: dict[Ids, list[Draft]] = {}
            for draft in members:
                prompts.setdefault(draft.request.prompt_ids, []).append(draft)
            chunk.add(max(prompts, key=len), prompts)
    if chunk.drafts:
        yield chunk


def _clusters(drafts: Sequence[Draft]) -> list[list[Draft]]:
    """Drafts that share a trunk: those of one group, or with equal prompts.

    The group of a session is ignored, because a session keeps its own cache. It shares a trunk with equal prompts only.
    """
    members: dict[str | Ids, list[Draft]] = {}
    for draft in drafts:
        group = "" if draft.request.session else draft.request.group
        members.setdefault(group or draft.request.prompt_ids, []).append(draft)
    return list(members.values())


def _longest(cluster: list[Draft]) -> int:
    return max(len(draft.request.prompt_ids) for draft in cluster)


def common_prefix(left: Ids, right: Ids) -> int:
    """Length of the common prefix. Bisection over slices is faster than a loop: slices are compared in C."""
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
