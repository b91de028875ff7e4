"""Proofs of a finished run: its origin, a replay of its decisions, and a second run compared byte for byte.

Nothing here writes into a run. What a run records about itself is written by `runs/`.
"""
