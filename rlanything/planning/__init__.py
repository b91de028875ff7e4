"""Work before a run: compose and check the configuration, write dvc.yaml, estimate the cost.

Nothing here trains or measures a model, except for the few training iterations of a time estimate.
"""
