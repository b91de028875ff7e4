"""How the engines of a process share the memory that is declared for keys and values.

A training has up to three engines: of the policy, the reward model and the adapter. Each says what it needs when it is
made: one sequence of its model's context, as often as it has servers. So too little memory is refused before anything
is sampled. It takes its part when it starts, which is when it is first asked. What is left is divided among the engines
that have not started, in proportion to what they need.
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

from rlanything.core.errors import UserError

GIB = 2**30


class Budget:
    """The memory of the caches of all engines of a process, in bytes. An engine may be any object."""

    def __init__(self) -> None:  # an engine that nobody closed is forgotten all the same
        self._needs: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._taken: WeakKeyDictionary[object, int] = WeakKeyDictionary()

    def join(self, engine: object, total: int, need: int) -> None:
        """Know of an engine that may start. One that is known stays as it is.

        Args:
            engine: who may start.
            total: bytes of all engines together.
            need: the least bytes that it starts with.

        Raises:
            UserError: when the engines that are known need more than `total`. This one is not known then.
        """
        if engine in self._needs:
            return
        self._needs[engine] = need
        together = sum(self._needs.values())
        if total < together:
            count = len(self._needs)
            self.leave(engine)
            raise too_small(
                total, together, f"the {count} engines of this process need" if count > 1 else "it needs"
            )

    def take(self, engine: object, total: int) -> int:
        """The bytes of an engine that starts and has joined. What it had taken before is given back first.

        Raises:
            UserError: when the engines that started before have left less than it needs.
        """
        self._taken.pop(engine, None)
        taken, need = sum(self._taken.values()), self._needs[engine]
        waiting = sum(size for other, size in self._needs.items() if other not in self._taken)
        part = (total - taken) * need // waiting
        if part < need:
            who = (
                f"engines that run have taken {taken / GIB:.3g} GiB, and with what the others need they take"
            )
            raise too_small(total, taken + waiting, who)
        self._taken[engine] = part
        return part

    def leave(self, engine: object) -> None:
        """Forget an engine and give back what it has taken. An unknown one is ignored."""
        self._needs.pop(engine, None)
        self._taken.pop(engine, None)


SHARED = Budget()
"""The budget of this process."""


def too_small(total: int, least: int, who: str) -> UserError:
    """The error for too little memory. who: who needs `least` bytes, with a verb."""
    rounded = math.ceil(1000 * least / GIB) / 1000
    return UserError(
        f"engine.cache_gib = {round(total / GIB, 6):g}: {who} {rounded:g} GiB, so that each model, and each of its "
        f"servers, has room for one prompt with its reply; allowed: at least {rounded:g}, or a smaller engine.context, "
        "which bounds them"
    )
