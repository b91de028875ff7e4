"""What the code of an environment returns, and whether a run can use it: tasks, observations, results of steps.

Nothing here calls an environment, and what becomes of an unusable value is not decided here but in `loop`.
"""
