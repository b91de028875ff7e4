"""Workspaces: folders in .rla/ where other settings run, so that what is recorded in the project's root stays as it is.

`make repro SCALE=smoke` makes one, and so does a stage with overrides:
`rlanything train --arm full signals.lambda=0.5`.
A workspace is a small project: its own params.yaml, runs and evaluation, and links to the sources of the project.
"""
