# right: timeout
# everywhere
# Whatever of this is possible, the program is late.
import os


def autogroup():
    with open("/proc/self/autogroup", "w") as file:
        file.write("19")


for attempt in (
    autogroup,
    lambda: os.nice(19),
    lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)),
):
    try:
        attempt()
    except OSError:
        pass
while True:
    pass
