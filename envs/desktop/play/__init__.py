"""An episode on a desktop as an agent meets it: what it reads, what its replies do, and how episodes advance together.

`screen` reads an accessibility tree, `text` writes it down, `environment` has the protocol of the loop, and `together`
sets up and steps many worlds at once.
"""
