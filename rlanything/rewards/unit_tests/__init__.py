"""Reward models that write unit tests for programs (paper, appendix C): the coding setting.

The environment runs the programs (`envs/coding`), and the rewards are computed in `core/coding_signals.py`. Reward
models that vote on steps are in `rewards/step_votes`; neither imports the other.
"""
