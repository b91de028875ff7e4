"""Desktops: OSWorld's virtual machines behind a bridge (docs/osworld.md), and a small real desktop (docs/gui.md).

`bridge` is the protocol between this project and a world, `play` is an episode as an agent meets it, `osworld` reads
OSWorld's task files, `small` is the desktop that runs anywhere with its tasks and experts, and `rewording` reads what
an adapter makes of a task of either.
"""
