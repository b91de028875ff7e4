"""How long common commands take to start and answer: `python -m benchmarks.startup`.

Each start is a process of its own. Nothing of the commands is imported here.
"""
