"""How fast the parts are, beside what one would use without them: one module a claim, outside the package.

`python -m benchmarks` (or `make bench`) runs them all, prints a table and writes bench.json. A benchmark changes
nothing that it measures, and no result depends on code in here.
"""
