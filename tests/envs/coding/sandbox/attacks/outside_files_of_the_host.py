# right: ok
for path in (
    "HOST_FILE",
    "/etc/shadow",
    "/proc/1/root/etc/shadow",
    "/proc/1/cwd/x",
    "/old_root/etc/passwd",
):
    refused(open, path)
refused(os.listdir, "HOST_FOLDER")
refused(os.listdir, "/proc/1/root")
print("contained")
