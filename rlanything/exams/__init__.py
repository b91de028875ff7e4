"""Exams: external question sets that a trained policy answers, and the grading of its answers.

The environment defines the questions and the grading (`core.exams`); experiments/livebench.yaml names its class.
The evaluation panels of a run are in `stages.evaluate`.
"""
