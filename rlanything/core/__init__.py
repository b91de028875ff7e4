"""The vocabulary of all rooms and the mathematics of the paper.

Pure functions and immutable values: no files, no models, no torch.
"""
