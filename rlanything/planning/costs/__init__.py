"""What a training costs before any model is loaded: parameters, bytes on each device, tokens and hours of an iteration.

A model is known by its config.json. All else is arithmetic with stated assumptions.
"""
