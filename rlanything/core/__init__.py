"""The vocabulary and the mathematics: pure functions and frozen dataclasses; no torch, no IO."""
