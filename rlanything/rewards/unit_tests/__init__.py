"""Reward models that write unit tests for programs (paper, appendix C): coding. The environment runs the programs."""
