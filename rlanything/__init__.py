"""RLAnything: train policy, reward model and environment tasks together, and prove afterwards what happened."""

__version__ = "0.1.0"
