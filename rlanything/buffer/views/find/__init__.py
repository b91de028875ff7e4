"""Finding a buffer by its name: runs on disk, runs in training, git revisions and DVC experiments, exported files.

Also what the stored rollouts of a run say about its tasks. Nothing here compares or prints buffers.
"""
