"""The adaptation check: what the rewrites of finished runs did to the tasks, measured on fresh rollouts.

It trains nothing. It plays both tasks of every rewrite, and the tasks with which training began. It reads the learning
curves of training (docs/checks.md).
"""
