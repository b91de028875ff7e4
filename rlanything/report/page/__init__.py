"""The report as one HTML page: the same document as report.md, with its figures inside, for a browser and for print.

The page has no script and loads nothing. What it shows is written in `document` and `sections`; nothing is said here.
"""
