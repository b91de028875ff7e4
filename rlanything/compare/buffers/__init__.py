"""Task buffers of two arms over their seeds: `rlanything buffer diff ARM ARM`, and the same as a function.

It is here for the report's statistics, which the buffer's views may not import. Single buffers are compared there.

from rlanything.compare.buffers import diff_arms
page = diff_arms("full", "low:full")
"""

from rlanything.compare.buffers.arms import diff_arms

__all__ = ["diff_arms"]
