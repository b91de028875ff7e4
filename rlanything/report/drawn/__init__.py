"""The charts of the report: each has the numbers that it shows, and draws its matplotlib figure when that is asked for.

`report.figures` writes them as files. A chart's look is `report.style`, so that an arm has one colour everywhere.
"""
