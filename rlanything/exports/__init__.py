"""Rollouts for other tools: `rlanything rollouts export` writes logs of inspect_ai, datasets, and rows for training.

What a rollout holds comes from `rollouts`, and filters from `view`. This room turns a policy's prompts into messages,
and writes folders that appear whole or not at all. None of the other tools is imported: their packages read the files
in the tests. A format is one module and one entry in `formats.FORMATS`.
"""
