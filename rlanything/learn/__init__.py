"""Learning: packing experience into rows, the clipped surrogate, and the Lightning module that owns both models.

Where experience comes from is in `loop/` and `rewards/`.
"""
