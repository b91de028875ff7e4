"""What the plan predicts beside what is measured. `python -m benchmarks.plan` prints it.

The models that are measured are made here, small and random. The formulas are those of rlanything/planning/costs.
"""
