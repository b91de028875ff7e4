"""The stages of the pipeline: tasks, bootstrap, train, label, evaluate, report.

`declared` declares each stage and what it depends on. The code of a single run is in `runs/`.
"""
