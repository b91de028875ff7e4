"""Corruption: what finished reward models say about trajectories in which one step was damaged.

It trains nothing. It asks about the reward panel, and about damaged copies of it (docs/checks.md).
"""
