"""Seeds. Every request has its own, derived from names alone, so batching and sharding do not change results."""

from __future__ import annotations

import hashlib

MASK = (1 << 63) - 1
"""Seeds are non-negative and fit a signed 64-bit integer."""


def derive_seed(run_seed: int, phase: str, *parts: int | str) -> int:
    """Seed of one draw: sha256 over (run seed, phase, parts), truncated to 63 bits.

    Parts are hashed with their types and lengths, so ("1", 1) and (1, "1") differ, and so do ("ab", "c") and ("a",
    "bc").
    """
    digest = hashlib.sha256()
    for part in (run_seed, phase, *parts):
        raw = f"{type(part).__name__}:{part}".encode()
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return int.from_bytes(digest.digest()[:8], "big") & MASK
