# right: timeout
# The kernel forgets the CPU time of children that are ignored; the clock still ends it.
import os, signal, time

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        start = time.perf_counter()
        while time.perf_counter() < start + 0.02:
            pass
        os._exit(0)
    time.sleep(0.02)
