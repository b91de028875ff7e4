# right: ok
for path in (
    "/proc/kcore",
    "/proc/kmsg",
    "/proc/1/maps",
    "/proc/1/auxv",
    "/proc/1/stack",
    "/proc/1/syscall",
):
    refused(lambda: open(path, "rb").read(1))
if any(int(line.split()[0], 16) for line in list(open("/proc/kallsyms"))[:9]):
    print("addresses")
print("contained")
