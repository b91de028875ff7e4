"""Household text games: ALFWorld scenes, generated or downloaded, with an oracle and an expert. See README.md.

What the models are asked is in `experiments/prompts`, and how steps are rewarded is in `rlanything/rewards/step_votes`.
"""
