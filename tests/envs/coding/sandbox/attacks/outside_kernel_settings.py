# right: ok
def poke(path):
    with open(path, "w") as file:
        file.write("1")


for path in (
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/drop_caches",
    "/sys/power/state",
    "/proc/sys/kernel/hostname",
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/cgroup.procs",
    "/proc/1/oom_score_adj",
    "/proc/acpi/wakeup",
    "/proc/1/timerslack_ns",
):
    refused(poke, path)


def spare():
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write("-1000")


refused(spare)
print("contained")
