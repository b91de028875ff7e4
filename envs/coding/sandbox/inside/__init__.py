"""What runs inside a box: it reads programs, runs every test in a fresh fork, and reports facts.

The harness sends the text of these modules along with the command (`launch.py`), so they need Linux, the standard
library of Python 3.11 or newer, and each other. They know limits and inputs, never an expected output, and judge
nothing: a report says how a process ended and what it wrote. Untrusted code runs in forks only, which hold none of
the descriptors that reports go through; what they return stays bytes here.

As process 1 of its own pid namespace ("sealed") the watcher cannot be signalled from inside, ends everything else with
one `kill(-1)`, and inherits every orphan. Elsewhere it is a subreaper and ends what it finds among its children.

    link      frames to and from the harness
    seal      what the watcher gives up before it forks for the first time
    runqueue  how long a test waited for a CPU
    meter     what a running test uses
    fork      how a fork becomes a program
    watch     a fork, its pipes, its end
    wipe      an empty folder for the next test
    serve     the loop
"""
