"""The types that all packages share, and the mathematics of the paper.

Pure functions and immutable values: no files, no models, no torch.
"""
