"""Checks of an experiment as a whole, each in a folder of its own: `ladder` and `selection`.

A check is declared in experiments/check/ and publishes what it found in checks/ (docs/checks.md).
"""
