"""Sessions, whose caches are kept between calls. Sessions that start together form a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rlanything.engines.cache import Branches
from rlanything.engines.decode import Draft
from rlanything.engines.prompt_trunks import Ids, common_prefix


@dataclass(slots=True, eq=False)
class SessionBatch:
    """Sessions that advance together, in the order of the rows of `branches`.

    `texts`: name of the session -> its prompt and response so far. `drafts`: the drafts of the current call, one per
    row; empty between calls.
    """

    texts: dict[str, Ids]
    branches: Branches
    drafts: list[Draft]

    def record(self) -> None:
        """Store in `texts` what the drafts of the current call have read and written. The call is over."""
        self.texts = {
            draft.request.session: draft.request.prompt_ids + tuple(draft.ids) for draft in self.drafts
        }
        self.drafts = []

    def keep(self, names: Sequence[str]) -> None:
        """Drop all sessions except `names`: at least one, in the order of the rows."""
        rows = [row for row, name in enumerate(self.texts) if name in set(names)]
        if len(rows) < len(self.texts):
            self.branches = self.branches.select(np.array(rows))
            self.texts = {name: self.texts[name] for name in names}

    def resume(self, drafts: dict[str, Draft]) -> list[str]:
        """Make the uncached tokens of each prompt `pending`. Returns the names of the sessions whose cache is used.

        The cache is used up to the first token that differs from what the session has read and written. A row whose
        difference lies inside its trunk is not used.
        """
        useful = []
        for row, (name, text) in enumerate(self.texts.items()):
            if name not in drafts:
                continue
            prompt, trunk = drafts[name].request.prompt_ids, int(self.branches.visible[row])
            cached = min(
                trunk + int(self.branches.lengths[row]), common_prefix(text, prompt), len(prompt) - 1
            )
            if cached >= trunk:
                self.branches.lengths[row] = cached - trunk
                drafts[name].pending[:] = prompt[cached:] + tuple(drafts[name].ids)
                useful.append(name)
        return useful


class Sessions:
    """All batches of sessions, least recently used first. At most `limit` sessions are kept, or the newest batch."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._batches: list[SessionBatch] = []

    def __len__(self) -> int:
        return sum(len(batch.texts) for batch in self._batches)

    def clear(self) -> None:
        """Forget everything."""
        self._batches = []

    def release(self, names: Iterable[str]) -> None:
        """Forget these sessions; unknown names are ignored."""
        gone = set(names)
        self._batches = [batch for batch in self._batches if batch.texts.keys() - gone]
        for batch in self._batches:
            batch.keep([name for name in batch.texts if name not in gone])

    def add(self, drafts: Sequence[Draft], branches: Branches) -> None:
        """Keep the caches of sessions that have just had their first turn."""
        batch = SessionBatch({}, branches, list(drafts))
        batch.record()
        self._batches.append(batch)
        while len(self._batches) > 1 and len(self) > self._limit:
            self._batches.pop(0)

    def resume(self, drafts: Sequence[Draft]) -> tuple[list[SessionBatch], list[Draft]]:
        """The batches that serve a call, with their drafts in the order of their rows, and the unserved drafts.

        A batch that holds a session of the call drops its sessions that the call does not name or cannot use.
        Raises `ValueError` for a session named twice.
        """
        waiting = {draft.request.session: draft for draft in drafts if draft.request.session}
        if len(waiting) < sum(bool(draft.request.session) for draft in drafts):
            raise ValueError("a session is named twice in one call: ask for its turns one after the other")
        served, idle = [], []
        for batch in self._batches:
            if not waiting.keys() & batch.texts.keys():
                idle.append(batch)
            elif names := batch.resume(waiting):
                batch.keep(names)
                batch.drafts = [waiting.pop(name) for name in names]
                served.append(batch)
        self._batches = idle + served
        return served, [d for d in drafts if not d.request.session or d.request.session in waiting]
