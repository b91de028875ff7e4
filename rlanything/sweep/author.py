"""The author of commits that record trials, by whom they are told from commits of a whole experiment."""

NAME = "rlanything sweep"
EMAIL = "sweep@localhost"
