"""`rlanything provenance`: what a run, or the base models, are made from, and what differs from it in this project now.

`names` finds what a name means, `record` has the page of an arm, `base` that of the base models, `text` prints both.
"""
