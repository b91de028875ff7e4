"""Programming problems: the policy writes programs, the reward model writes unit tests. See docs/coding.md."""
