"""One run as a page, and results side by side: arms, seeds, workspaces, trials of sweeps, git revisions.

Sections, figures and statistics are those of `report`. Here is what a name means, and what differs.
"""
