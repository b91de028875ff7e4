"""A look as text for a terminal, and as plain data. What models, environments and strangers wrote is escaped.

Nothing here reads a file: a page is made from a `View` alone, for any width.
"""
