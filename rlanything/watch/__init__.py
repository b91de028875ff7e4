"""`rlanything watch`: a run, a pipeline or a sweep as people see it while it goes on, and after its end.

It reads files that runs write anyway, and knows of running processes by the locks that they hold. No run knows of it,
and it changes nothing. What it reads may be half-written, damaged or somebody else's.
"""
