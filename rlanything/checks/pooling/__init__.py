"""The pooling check: what all experiments of a project say together about the difference of two arms.

It trains nothing. It reads the evaluations of published checks, and weighs their differences (docs/checks.md).
"""
