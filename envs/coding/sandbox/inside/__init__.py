"""The watcher, which runs inside a box: it runs each test in a new fork, and reports how it ended.

The harness sends the source of these modules with the command (`backends/box.py`), so they need Linux, the standard
library of Python 3.11 or newer, and each other, and must not import anything else. They never know an expected output,
and judge nothing. Untrusted code runs in forks only, which have none of the descriptors that reports go through.

A fork inherits all memory of the watcher. So the watcher holds nothing of any test but numbers: limits, lengths, times,
how it ended. The kernel moves programs, inputs and outputs between the harness and the fork (`flow`). Names that a
program chooses, of files and processes, are read by other forks or wiped at once.

As process 1 of its own pid namespace ("sealed") the watcher cannot be signalled from inside, kills everything else with
one `kill(-1)`, and inherits every orphan. Elsewhere it is a subreaper and kills what it finds among its children.

    link      frames to and from the harness
    seal      privileges that the watcher drops before its first fork
    runqueue  how long a test waited for a CPU
    meter     the resources that a running test uses
    fork      what a fork does to run a program
    flow      programs, inputs and outputs, on their way past the watcher
    watch     supervision of a fork
    wipe      an empty folder for the next test
    serve     the loop
"""
