"""An episode as an agent meets it: what it reads, which commands it may give, and what they do.

`text` writes the page down, `commands` lists what is admissible, `episode` follows one episode, `environment` has the
protocol of the loop.
"""
