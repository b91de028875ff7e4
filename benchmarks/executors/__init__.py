"""What workers gain: `python -m benchmarks.executors` prints the time of the same work on 1 and on 2 workers.

Two kinds of work. `programs`: a sandbox runs programs on their tests; it needs processors. `waiting`: episodes whose
environment answers after 20 ms, as a service elsewhere does; it needs none. All settings take turns in every round, and
each time is divided by that of one worker of the same form in the same round, so that other load affects both alike.
Workers have one box of the sandbox each. Starting them is not counted.
"""
