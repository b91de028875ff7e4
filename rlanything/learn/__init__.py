"""Learning: packing experience into rows, the clipped surrogate, and the Lightning module that owns both models."""
