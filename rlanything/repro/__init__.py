"""Verification of a finished run: its origin, a replay of its decisions, and a second run compared byte for byte.

Nothing here changes a run. A run's record of itself is written by `runs/`.
"""
