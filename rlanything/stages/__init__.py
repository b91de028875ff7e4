"""The stages of the pipeline, one module each: tasks, bootstrap, train, label, evaluate, report.

`declared` says what each stage depends on. How a run works is in `runs/`.
"""
