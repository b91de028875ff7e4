"""Text generation behind the protocol `Engine`, with chat formats, checkpoints and devices.

What models are asked, and how their replies are read, is in `loop/prompts.py`.
"""
