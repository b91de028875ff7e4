# right: ok
# everywhere
# The names in /dev lead to the program's own pipes. Their other ends carry its own input and output, and nothing else.
import os

for number, name in enumerate(("stdin", "stdout", "stderr")):
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        try:
            end = os.open(f"/dev/{name}", flags | os.O_NONBLOCK)
        except OSError:
            continue
        if os.fstat(end).st_ino != os.fstat(number).st_ino:
            print("escaped:", name, os.readlink(f"/proc/self/fd/{end}"))
        try:
            if found := os.read(end, 1 << 16):
                print("escaped:", name, found)
        except OSError:
            pass
print("contained")
