# right: ok
for request in (16, 0x4206):
    refused(call, libc.ptrace, request, 1, None, None)
local = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
for x86, arm in ((310, 270), (311, 271)):
    refused(system, x86, arm, 1, local, 1, local, 1, 0)
for name in ("mem", "fd/0", "fd/3", "fd/4", "fd/5", "environ", "cwd", "exe"):
    refused(open, "/proc/1/" + name, "rb")
    refused(open, "/proc/1/" + name, "wb")
refused(os.listdir, "/proc/1/fd")
pidfd = os.pidfd_open(1)
for number in range(10):
    refused(system, 438, 438, pidfd, number, 0)
print("contained")
