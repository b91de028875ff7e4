"""Comparing task buffers: columns (table), what changed (changes), how to say it (page and the renderings)."""
