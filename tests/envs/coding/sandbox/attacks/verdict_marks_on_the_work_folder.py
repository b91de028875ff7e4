# right: ok
import array, fcntl, struct

for attempt in (
    lambda: os.utime("/tmp", (1234567, 1234567)),
    lambda: os.chmod("/tmp", 0o711),
    lambda: os.setxattr("/tmp", "user.mark", b"mark"),
):
    try:
        attempt()
    except OSError:
        pass
folder = os.open("/tmp", os.O_RDONLY)
for request in (0x40086602, 0x40046602):  # FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS: no dump, no time of access
    refused(fcntl.ioctl, folder, request, array.array("l", [0xC0]))
refused(fcntl.ioctl, folder, 0x401C5820, struct.pack("7I", 0xC0, 0, 0, 0, 0, 0, 0))  # FS_IOC_FSSETXATTR
for command in (1036, 1038):  # F_SET_RW_HINT, F_SET_FILE_RW_HINT
    refused(fcntl.fcntl, folder, command, struct.pack("Q", 5))
print("contained")
