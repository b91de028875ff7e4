"""Reward models that vote on every step of an episode (paper, sections 2.1 and 2.2).

Text games use them. Reward models that write unit tests are in `rewards/unit_tests`; neither imports the other.
"""
