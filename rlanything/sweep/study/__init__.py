"""The Optuna study: where it is stored, how it chooses points, and when it gives a trial up.

Nothing here knows how a trial is run or what its folder holds.
"""
