"""How a game is played: the compiled world, commands and their text, shortest plans, and whether a game is playable.

All of it is pure Python and deterministic. The environments that agents talk to are in `engines`.
"""
