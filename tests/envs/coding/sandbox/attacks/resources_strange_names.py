# right: ok
import os, stat

for name in (
    b"-rf",
    b"*",
    b"a\nb",
    b"\xff1",
    b"\xff\xfe",
    b" ",
    b"..x",
    "\u202e".encode(),
    b"%s",
    b"x" * 255,
):
    os.makedirs(os.path.join(name, b"\xff1"))
    os.chmod(name, 0)
os.mkfifo("fifo")
os.mknod("socket", stat.S_IFSOCK | 0o600)
print("contained")
