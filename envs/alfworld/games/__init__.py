"""What a game is: a goal in a furnished room, as data, as PDDL facts and as a PDDL problem.

ALFRED's tables (floor plans, affordances, goals) are read here. How a game is played is in `play`.
"""
