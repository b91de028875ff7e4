"""Who runs the environments of a run: this process, worker processes of this machine, or workers on a Ray cluster.

`opened` starts what the section `executor` names. `dispatcher` gives the work to the workers, and again where it is
lost. `worker` is what runs in each of them. `processes` and `actors` start them. `ahead` samples one batch beside
the work of an iteration. Models are not placed here: they stay with the process that trains or measures. See
docs/workers.md.
"""
