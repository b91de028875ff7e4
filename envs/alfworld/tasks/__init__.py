"""Where tasks come from: games drawn for a split, and games rewritten as an adapter asks for it.

What a game is, and whether it can be solved, is in `games/` and `play/`.
"""
