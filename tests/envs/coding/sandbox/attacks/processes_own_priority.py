# right: ok
# A program that chooses to wait for a CPU would not be judged: on a busy machine its wait does not count.
import threading


def poke(name):
    os.close(os.open(f"/proc/self/{name}", os.O_WRONLY))


refused(os.nice, 1)
for who in (0, os.getpid(), threading.get_native_id()):
    refused(os.setpriority, os.PRIO_PROCESS, who, 19)
    for policy in (os.SCHED_IDLE, os.SCHED_BATCH, os.SCHED_OTHER):
        refused(os.sched_setscheduler, who, policy, os.sched_param(0))
    refused(os.sched_setparam, who, os.sched_param(0))
# struct sched_attr: size, policy, flags, nice, ...
attributes = (ctypes.c_uint32 * 12)(48, 0, 0, 0, 19)
refused(system, 314, 274, 0, attributes, 0)
refused(call, libc.prctl, 62, 1, 0, 0, 0)
if os.uname().nodename == "box":  # that of bwrap: nobody can make a container's /proc read-only
    for name in ("autogroup", *os.listdir("/proc/self")):
        refused(poke, name)
os.sched_yield()
print("contained")
