"""Reward models: one protocol, and a folder for each kind: votes on steps, unit tests for programs.

A kind's folder holds what it asks its model, the signals that follow, how the first model is taught, how a model is
measured, and what a run stores of it. The loop that calls a reward model is in `loop`, training in `learn`.
"""
