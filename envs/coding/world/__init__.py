"""Generated programming problems: chains of operations on a number, a list of numbers or a line of text.

Their splits and their teacher are here too. Nothing is run: a chain computes its own outputs.
"""
