"""A small desktop that runs anywhere: Xvfb, a window manager and five applications in a box, and tasks for them.

`box` starts it, `world` and the modules that it imports run inside with the system's Python, `templates` reads
`tasks/`, `expert` plays its experts, and `family` has the protocols of the loop.
"""
