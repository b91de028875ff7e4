"""Warnings about a seed while it trains, in words, each with what to do about it.

A check is a function from the rows of metrics to a `Warned`, or None. It looks at the last iterations only, so that its
warning goes away when the cause does. The report has checks of a whole run (`report/health.py`); where both look at the
same number, the threshold is the same. The training itself prints a few warnings, of what lasts and costs the whole run
(`loop/metrics.py`, `rewards/*/metrics.py`); their thresholds are higher.
"""
