"""The ladder: judges of declared accuracy in place of the reward model, so that it is known whether arms can differ.

It runs the pipeline's stages in a workspace of its own (docs/checks.md). The judge itself is in `rewards/oracle.py`,
the statistics are in `report/results`.
"""
