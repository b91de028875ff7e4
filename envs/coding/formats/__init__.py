"""The file formats of programming problems: LiveBench, LiveCodeBench, CodeContests and the paper's reference code.

They are read and written: a file that is read back holds the same problems. What a problem is, is in `problem.py`.
"""
