# right: ok
open("s", "w").write("#!/bin/sh")
os.chmod("s", 0o6755)
refused(os.chown, "s", 0, 0)
if "NoNewPrivs:\t1" not in open("/proc/self/status").read():
    print("privileges by exec")
print("contained")
