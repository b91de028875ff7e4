# right: ok
# Queues, tables and buffers of the kernel that no process is charged for.
import fcntl, mmap, struct

refused(system, 253, 1043)
refused(system, 294, 26, 0)
refused(system, 444, 444, None, 0, 1)
refused(system, 317, 277, 1, 0, None)
refused(system, 206, 0, 1 << 16, ctypes.create_string_buffer(8))
file = open("file", "w+b")
for how in (fcntl.F_SETLK, fcntl.F_SETLKW, 37, 38):
    refused(fcntl.fcntl, file, how, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 1, 1, 0))
refused(fcntl.fcntl, file, 1024, fcntl.F_WRLCK)
refused(fcntl.fcntl, os.open(".", os.O_RDONLY), 1026, 2)
reader, writer = os.pipe()
refused(fcntl.fcntl, writer, 1031, 1 << 20)
page = ctypes.create_string_buffer(4096)
refused(system, 278, 75, writer, struct.pack("QQ", ctypes.addressof(page), 4096), 1, 0)
ours, others = socket.socketpair()
for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
    refused(ours.setsockopt, socket.SOL_SOCKET, option, 1 << 20)
refused(ours.bind, "\0name")
refused(ours.listen, 4096)
refused(call, libc.prctl, 78, ctypes.c_ulong(1), ctypes.c_ulong(1 << 16), ctypes.c_ulong(0), 0)
refused(mmap.mmap, -1, 1 << 20)
print("contained")
