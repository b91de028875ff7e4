"""One run of one arm and seed: its models, its training, its folder on disk, and the record of its origin.

Code that all stages share is here too: paths, worker processes, hashes, and which code a result depends on. The stages
themselves are in `stages/`.
"""
