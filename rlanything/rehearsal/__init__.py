"""A rehearsal of a large experiment: tiny stand-ins for the checkpoints that the configuration names.

A stand-in has the real architecture, a byte-level tokenizer, a chat template of the real shape, and a few minutes less
than no skill. Games and problems for a rehearsal are written by the environments (`python -m envs.alfworld`).
"""
