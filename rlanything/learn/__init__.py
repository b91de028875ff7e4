"""Learning: packing experience into rows, the loss, and the Lightning module that owns both models.

Experience is collected in `loop/` and scored in `rewards/`.
"""
