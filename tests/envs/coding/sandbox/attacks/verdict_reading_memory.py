# right: wrong memory
# expects: SECRET
import re

found = []
for pid in ("self", "1"):
    try:
        areas = open(f"/proc/{pid}/maps").read().splitlines()
        with open(f"/proc/{pid}/mem", "rb") as memory:
            for area in areas:
                low, high = (int(end, 16) for end in area.split()[0].split("-"))
                if " r" in area and high - low < 1 << 26:
                    memory.seek(low)
                    try:
                        found += re.findall(b"answer-[0-9a-f]{16}", memory.read(high - low))
                    except OSError:
                        pass
    except OSError:
        pass
for path in ("/proc/1/cmdline", "/proc/self/cmdline", "/proc/self/environ"):
    try:
        found += re.findall(b"answer-[0-9a-f]{16}", open(path, "rb").read())
    except OSError:
        pass
print(found[0].decode() if found else "nothing")
