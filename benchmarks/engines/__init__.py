"""The engines beside each other: `measure` does the work, `__main__` prints the table.

What one engine saves by its caches is measured in `benchmarks.sampling`, and the requests of the work come from there.
"""
