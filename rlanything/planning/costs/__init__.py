"""Estimates the cost of a training without loading a model: parameters, bytes on each device, tokens, hours.

The sizes of a model come from its config.json. The rest is computed from stated assumptions.
"""
