"""Whose fault an error is. Part of the program in the box: what is neither of these is a fault of the desktop."""


class Refused(Exception):
    """A request that is not one of the protocol."""


class BadTask(Exception):
    """A task that no desktop can set up or verify: the next task may be asked of the same desktop."""
