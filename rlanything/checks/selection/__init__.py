"""Selection at test time: a policy writes programs, a reward model writes tests, and one program is chosen (Fig. 8).

It measures finished runs of the coding setting and trains nothing (docs/checks.md).
"""
