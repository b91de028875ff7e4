# right: ok
import os

found = [k for k in os.environ if "SECRET" in k]
try:
    found += ["process 1"] * (b"SECRET" in open("/proc/1/environ", "rb").read())
except OSError:
    pass
print(found or "contained")
