"""RLAnything: train policy, reward model and environment tasks together, and prove afterwards what happened.

Which room holds what, and who may import whom: docs/architecture.md.
"""

__version__ = "0.1.0"
