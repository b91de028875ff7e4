"""Programming problems: the policy writes programs, the reward model writes unit tests. See docs/coding.md.

What the loop asks of the reward model, and how it learns, is in `rlanything/rewards/unit_tests`.
"""
