"""What a run stores, as JSON: rollouts with votes and lessons, proposals, provenance. Each record has a form.

A record may be anybody's, so it is compared with its form before it is read. The files themselves are read in `files`.
"""
