"""The kinds of box that programs run in: bubblewrap, a container, or a plain process without isolation.

Which test runs in which box, and what its report means, is decided outside of this folder.
"""
