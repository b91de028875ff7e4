"""A small world of programming problems: chains of operations on a number, a list of numbers or a line of text."""
