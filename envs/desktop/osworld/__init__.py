"""OSWorld's tasks: its files, the paper's extension of them, and what an adapter may change.

`files` reads a folder `evaluation_examples`, `tasks` draws from it, and `family` has the protocols of the loop. The
world behind them is OSWorld's own (`envs.desktop.bridge.osworld_bridge`).
"""
