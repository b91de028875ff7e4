"""The protocol between this project and a world that shows a desktop: one JSON object a line, over a command's pipes.

`answers` has its limits and reads what a world says, which is never trusted; `lines` sends and receives lines in time,
`world` is one running world, and `pool` keeps worlds for the next episode. `osworld_bridge` is a program of its own,
which OSWorld's Python runs. docs/osworld.md has the messages.
"""
