# right: ok
for folder in (
    "/",
    "/usr",
    "/usr/lib",
    "/etc",
    "/dev",
    "/dev/shm",
    "/proc",
    "/run",
    "/var/tmp",
    sys.prefix,
    os.path.dirname(os.__file__),
    "HOST_FOLDER",
    "/root",
    "/home",
):
    refused(open, os.path.join(folder, "mark"), "w")
    refused(os.mkdir, os.path.join(folder, "folder"))
print("contained")
