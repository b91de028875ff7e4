# right: ok
# everywhere
import os, sys

for action in (
    lambda: os.write(0, b"x"),
    lambda: os.lseek(0, 0, 2),
    lambda: os.truncate(0, 0),
    lambda: sys.stdin.buffer.seek(0),
    lambda: open("/dev/stdin", "w").write("x"),
):
    try:
        action()
    except (OSError, ValueError):
        pass
sys.stdin.read()
sys.stdin.close()
os.close(0)
print("contained")
