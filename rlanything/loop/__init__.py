"""One iteration of the algorithm: choose tasks, roll out, ask the reward model, decide about rewrites, adapt.

`iteration.Loop` runs these steps. Reward models are in `rewards`, training is in `learn`.
"""
