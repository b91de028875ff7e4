"""Which slots an iteration rolls out: the next ones of an endless sequence of shuffled orders of all slots."""

from __future__ import annotations

from collections.abc import Sequence, Set

from rlanything.core.seeds import derive_seed


def slot_order(run_seed: int, epoch: int, slots: Sequence[int]) -> list[int]:
    """The order in which epoch `epoch` visits the slots. It does not depend on the order of `slots`."""
    return sorted(slots, key=lambda slot: derive_seed(run_seed, "order", epoch, slot))


def next_slots(
    run_seed: int, slots: Sequence[int], cursor: int, busy: Set[int], count: int
) -> tuple[list[int], int]:
    """The next `count` slots from position `cursor` that are not in `busy`, each once, and the position after them.

    There are fewer when all others are busy. A busy slot is passed over until the next epoch.
    """
    found: list[int] = []
    while len(found) < min(count, len(slots) - len(busy)):
        slot = slot_order(run_seed, cursor // len(slots), slots)[cursor % len(slots)]
        cursor += 1
        if slot not in busy and slot not in found:
            found.append(slot)
    return found, cursor
