"""Text generation behind the one protocol `Engine`, and the ways in and out of token ids that it needs.

What models are asked, and how their answers are read, is in `loop/prompts.py`.
"""
