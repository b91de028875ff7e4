"""One run of one arm and seed: made from the configuration, trained, written to disk, and traced to its origin.

Here are also the parts that all stages share: paths, worker processes, hashes, and the code that a result depends on.
What a stage does with its runs is in `stages/`.
"""
