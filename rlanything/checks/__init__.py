"""Checks of an experiment as a whole, each in a folder of its own: `ladder`, `study`, `selection`,
`corruption` and `adaptation`.

A check is declared in experiments/check/ and publishes what it found in checks/ (docs/checks.md). Checks of a
configuration are in `planning/check.py`, those of a finished run in `repro`.
"""
