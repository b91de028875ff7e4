"""The page of one run, or of the runs of one arm, finished or in training.

The runs are read as a project of their own, so that the sections of the report show them.
"""
