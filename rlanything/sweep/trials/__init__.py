"""Running trials: their folders, the processes that train and evaluate them, and what they achieved.

Nothing here writes what is published.
"""
