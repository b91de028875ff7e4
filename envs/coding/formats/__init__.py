"""The file formats of programming problems: LiveBench, LiveCodeBench, CodeContests and the paper's reference code.

They are read, never written. What a problem is, is in `problem.py`.
"""
