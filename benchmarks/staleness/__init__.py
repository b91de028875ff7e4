"""What `train.staleness` 1 gains: `python -m benchmarks.staleness` prints seconds of an iteration without and with it.

The same training is run in every form, in turn, in every round: in one process, with workers, and with workers and one
step off. Each time is divided by that of workers alone in the same round, so that other load affects both alike. The
learning curve's panels and the start of workers are not counted. Seconds are on the clock: overlap saves nothing else.
`--wait` lets every step of an environment wait, as a service elsewhere does; that needs no processor.
"""
