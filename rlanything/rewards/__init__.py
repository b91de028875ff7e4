"""Reward models: one protocol, and a folder for each kind: votes on steps, unit tests for programs.

The folder of a kind holds what its model is asked, the signals computed from the replies, the warm start, the
evaluation, and what a run stores. The loop that calls a reward model is in `loop`, training in `learn`.
"""
