"""Exams: question sets from outside that a trained policy answers, and the grading of its answers.

The environment defines the questions and the grading (`core.exams`); experiments/livebench.yaml names its class.
The panels that training is measured on are in `stages.evaluate`.
"""
