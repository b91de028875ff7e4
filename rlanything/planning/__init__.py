"""What happens before a run: the configuration is composed and checked, dvc.yaml is written, the cost is estimated.

Nothing here trains or measures a model, except for the few iterations that a time estimate needs.
"""
