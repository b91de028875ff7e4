"""Household text games: ALFWorld scenes, generated or downloaded, with an oracle and an expert. See README.md."""
