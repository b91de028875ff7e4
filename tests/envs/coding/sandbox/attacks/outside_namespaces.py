# right: ok
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x2000000, 0x80, 0x8000000, 0x4000000):
    refused(call, libc.unshare, flag)
    refused(system, 56, 220, flag | 17, None, None, None, None)
refused(system, 435, 435, ctypes.create_string_buffer(88), 88)
refused(lambda: call(libc.setns, os.open("/proc/self/ns/net", os.O_RDONLY), 0))
print("contained")
