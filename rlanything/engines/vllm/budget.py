"""How the engines of a process share the memory that is declared for keys and values.

A training has up to three engines: of the policy, the reward model and the adapter. An engine takes its part when it
starts, which is when it is first asked. The part is what is left, divided by the number of engines that have not
started, so that every engine gets the same. An engine with several servers divides its part among them.
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

    def take(self, engine: object, total: int, least: int, servers: int = 1) -> int:
        """The bytes of an engine that starts, or of each of its servers. What it had taken before is given back first.

        Args:
            engine: who takes.
            total: bytes of all engines together.
            least: bytes of one sequence of the model's full context, the least that vLLM starts with.
            servers: how many share the engine's part.

        Raises:
            UserError: when the part is smaller than `least`.
        """
        self.leave(engine)
        self.join(engine)
        sharers, taken = len(self._waiting), sum(self._taken.values())
        part = (total - taken) // sharers // servers
        if part < least:
            each = f" in each of an engine's {servers} servers" if servers > 1 else ""
            raise UserError(
                f"engine.cache_gib = {total / GIB:g}: engines of this process have taken {taken / GIB:.3g} GiB of it, "
                f"and {sharers} share the rest. One sequence of the model's full context needs {least / GIB:.3g} GiB"
                f"{each}, so it must be at least {(taken + sharers * servers * least) / GIB:.3g}"
            )
        self._waiting.discard(engine)
        self._taken[engine] = part * servers
        return part

    def leave(self, engine: object) -> None:
        """Forget an engine and give back what it has taken. An unknown one is ignored."""
        self._waiting.discard(engine)
        self._taken.pop(engine, None)


SHARED = Budget()
"""The budget of this process."""
