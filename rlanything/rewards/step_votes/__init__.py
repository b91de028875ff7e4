"""Reward models that vote on every step of an episode (paper, section 3.1).

Text games use them. Reward models that write unit tests are in `rewards/unit_tests`; neither imports the other.
"""
