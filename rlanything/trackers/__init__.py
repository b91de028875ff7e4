"""Lightning's loggers where several seeds write at once: the configuration names them (`train.loggers`).

They copy metrics and change no result. Whoever makes them is `runs.trackers`; no other module knows them.
"""
