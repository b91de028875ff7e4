"""Warm starts of the embedded models: maximum likelihood of given responses.

The models must be ready within minutes, so that this is tuned for the success rate per CPU-second.
"""
