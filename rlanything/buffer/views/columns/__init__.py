"""A buffer as columns: in memory for comparing a million slots, and as one Parquet file.

Comparing itself is in `compare/`.
"""
