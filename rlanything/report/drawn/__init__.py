"""The charts of the report: each is a matplotlib figure and the numbers that it shows.

`report.figures` writes them as files. A chart's look is `report.style`, so that an arm has one colour everywhere.
"""
