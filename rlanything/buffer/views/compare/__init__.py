"""Comparing two or three buffers: what changed (changes, slots, statistics), as JSON, text, Markdown or a page.

How a buffer is found by its name is in `find/`.
"""
