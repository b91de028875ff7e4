"""Proof: where a run came from, that it comes out the same again, and that its numbers follow from its rollouts."""
