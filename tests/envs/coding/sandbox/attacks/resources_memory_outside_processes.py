# right: ok
# Memory that no process is charged for, or that outlives them all.
refused(os.memfd_create, "x")
refused(system, 447, 447, 0)
refused(system, 29, 194, 0, 1 << 20, 0o1666)
refused(system, 68, 186, 0, 0o1666)
refused(system, 64, 190, 0, 1, 0o1666)
refused(system, 240, 180, b"mark", os.O_RDWR | os.O_CREAT, 0o600, None)
refused(open, "/dev/mqueue/mark", "w")
refused(open, "/dev/shm/mark", "w")
print("contained")
