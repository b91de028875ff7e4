"""Sweeps: which trials to run, how they are measured and compared, and what is written about them."""
