"""Sweeps: train many settings, compare them, publish the comparison.

In order: `declare` (what a sweep file says), `study` (the Optuna study), `trials` (workers that run the stages),
`results` (what is published). A sweep runs pipeline stages; no stage knows of sweeps.
"""
