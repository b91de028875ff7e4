# right: ok
import resource

for what in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
    refused(resource.prlimit, 1, what, (0, 0))
refused(os.sched_setaffinity, 1, {0})
refused(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))
for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_USER, 0), (os.PRIO_PGRP, 0)):
    refused(os.setpriority, which, who, 19)
refused(system, 251, 30, 1, 1, 3 << 13)
print("contained")
