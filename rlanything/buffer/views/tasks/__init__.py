"""Comparing tasks of any family: their fields, their texts, and which of them are nearly the same.

Nothing here knows of slots, versions or runs.
"""
