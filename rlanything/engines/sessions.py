"""The sessions whose caches are kept between calls, in the batches in which they started."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rlanything.engines.cache import Branches
from rlanything.engines.decode import Draft
from rlanything.engines.plan import Ids, common_prefix


@dataclass(slots=True, eq=False)
class SessionBatch:
    """Sessions that advance together. `texts`: name -> prompt and response so far, in the order of the rows."""

    texts: dict[str, Ids]
    branches: Branches
    drafts: list[Draft]

    def record(self) -> None:
        """Remember what the drafts of the call that ends now have read and written."""
        self.texts = {
            draft.request.session: draft.request.prompt_ids + tuple(draft.ids) for draft in self.drafts
        }
        self.drafts = []


class Sessions:
    """All batches of sessions, least recently used first; at most `limit` rows are kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._batches: list[SessionBatch] = []

    def clear(self) -> None:
        """Forget everything."""
        self._batches = []

    def release(self, names: Iterable[str]) -> None:
        """Forget these sessions; unknown names are ignored."""
        gone = set(names)
        for batch in list(self._batches):
            self._keep(batch, [name for name in batch.texts if name not in gone])

    def add(self, drafts: Sequence[Draft], branches: Branches) -> None:
        """Keep the caches of sessions that have just had their first turn."""
        batch = SessionBatch({}, branches, list(drafts))
        batch.record()
        self._batches.append(batch)
        while len(self._batches) > 1 and sum(len(old.texts) for old in self._batches) > self._limit:
            self._batches.pop(0)

    def resume(self, drafts: Sequence[Draft]) -> tuple[list[SessionBatch], list[Draft]]:
        """The batches that serve a call, with their drafts in the order of their rows, and the unserved drafts.

        A batch in which any of the call's sessions lives lets go of its sessions that are absent from the call, and
        of those of which too little is cached to be of use. Raises `ValueError` for a session named twice.
        """
        by_name = {draft.request.session: draft for draft in drafts if draft.request.session}
        if len(by_name) < sum(bool(draft.request.session) for draft in drafts):
            raise ValueError(
                "a session is named twice in one call; its turns must be asked for one after the other"
            )
        served: list[SessionBatch] = []
        for batch in list(self._batches):
            if by_name.keys() & batch.texts.keys():
                self._keep(
                    batch, [name for name in batch.texts if name in by_name and _resume(batch, by_name[name])]
                )
                batch.drafts = [by_name.pop(name) for name in batch.texts]
                served += [batch] if batch.drafts else []
        self._batches = [batch for batch in self._batches if batch not in served] + served
        return served, [d for d in drafts if not d.request.session or d.request.session in by_name]

    def _keep(self, batch: SessionBatch, names: Sequence[str]) -> None:
        if len(names) == len(batch.texts):
            return
        rows = {name: row for row, name in enumerate(batch.texts)}
        batch.texts = {name: batch.texts[name] for name in names}
        if names:
            batch.branches = batch.branches.select(np.array([rows[name] for name in names]))
        else:
            self._batches.remove(batch)


def _resume(batch: SessionBatch, draft: Draft) -> bool:
    """Point a draft behind what its row has cached of its prompt; False when that is less than the row's trunk."""
    row = list(batch.texts).index(draft.request.session)
    prompt, visible = draft.request.prompt_ids, int(batch.branches.visible[row])
    known = min(common_prefix(batch.texts[draft.request.session], prompt), len(prompt) - 1)
    cached = min(known, visible + int(batch.branches.lengths[row]))
    if cached < visible:
        return False
    batch.branches.lengths[row] = cached - visible
    draft.pending[:] = prompt[cached:] + tuple(draft.ids)
    return True
