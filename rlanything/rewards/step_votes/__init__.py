"""Reward models that vote on every step of an episode (paper, section 3.1).

Text games use them. The kind that writes unit tests is beside it, and neither knows the other.
"""
