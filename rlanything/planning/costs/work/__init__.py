"""The work of an arm and of every measurement: calls of models, and tokens that are read, written and trained on.

No device is known here. What the work takes on one is said by the modules around this package.
"""
