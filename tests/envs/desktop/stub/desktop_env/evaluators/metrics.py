"""Stands in for the evaluators, whose files make the digest."""
