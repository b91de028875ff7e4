# right: ok
for attempt in (
    lambda: os.utime("/tmp", (1234567, 1234567)),
    lambda: os.chmod("/tmp", 0o711),
    lambda: os.setxattr("/tmp", "user.mark", b"mark"),
):
    try:
        attempt()
    except OSError:
        pass
print("contained")
