"""Files and folders that appear whole or not at all, and the locks that keep two writers apart.

Nothing here knows what a run, a buffer or a configuration is.
"""
