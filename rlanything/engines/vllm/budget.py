"""How the engines of a process share the memory that is declared for keys and values.

A training has up to three engines: of the policy, the reward model and the adapter. An engine takes its part when it
starts, which is when it is first asked. The part is what is left, divided by the number of engines that have not
started, so that every engine gets the same.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary, WeakSet

from rlanything.core.errors import UserError

GIB = 2**30


class Budget:
    """The memory of the caches of all engines of a process, in bytes. An engine may be any object."""

    def __init__(self) -> None:
        self._waiting: WeakSet[object] = WeakSet()  # an engine that nobody closed is forgotten all the same
        self._taken: WeakKeyDictionary[object, int] = WeakKeyDictionary()

    def join(self, engine: object) -> None:
        """Know of an engine that may start."""
        self._waiting.add(engine)

    def take(self, engine: object, total: int, least: int) -> int:
        """The bytes of an engine that starts.

        Args:
            engine: one that has joined.
            total: bytes of all engines together.
            least: bytes of one sequence of the model's full context, the least that vLLM starts with.

        Raises:
            UserError: when the part is smaller than `least`.
        """
        sharers, taken = max(1, len(self._waiting)), sum(self._taken.values())
        part = (total - taken) // sharers
        if part < least:
            raise UserError(
                f"engine.cache_gib = {total / GIB:g}: engines of this process have taken {taken / GIB:.3g} GiB of it, "
                f"and {sharers} share the rest. One sequence of the model's full context needs {least / GIB:.3g} GiB, "
                f"so it must be at least {(taken + sharers * least) / GIB:.3g}"
            )
        self._waiting.discard(engine)
        self._taken[engine] = part
        return part

    def leave(self, engine: object) -> None:
        """Forget an engine and give back what it has taken. An unknown one is ignored."""
        self._waiting.discard(engine)
        self._taken.pop(engine, None)


SHARED = Budget()
"""The budget of this process."""
