"""The study: hypotheses that are registered before it runs, and what the runs say about each.

It runs the pipeline's stages in a workspace of its own, as the ladder does (docs/checks.md). The statistics are in
`report/results`.
"""
