"""What was measured: the declared metrics, the files that hold them, means with intervals, and the paper's values.

Nothing here knows how a table, a figure or a page looks; the sweep uses it as well as the report.
"""
