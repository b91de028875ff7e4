"""The views of one run: its slots, its events, how far its tasks moved, and whether its record is consistent.

Two runs are compared in `compare/`.
"""
