"""Tasks: a kind, a seed of its page, and a hint. `sampling` draws them, `edit` lets an adapter change them.

`ladders` has the kinds that are harder and easier forms of each other, `hints` says which hints are allowed.
"""
