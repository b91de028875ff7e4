"""The engines beside each other: `measure` does the work, `__main__` prints the table."""
