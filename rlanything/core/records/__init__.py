"""What a run stores, as JSON: rollouts with votes and lessons, proposals, provenance.

A record of a run may be anybody's, so it is compared with its form before it is read. A proposal has no form: it lies
in a checkpoint with a digest. The files themselves are read in `files`.
"""
