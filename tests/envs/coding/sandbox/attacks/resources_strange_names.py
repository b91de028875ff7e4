# right: ok
import os

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
socket = __import__("socket").socket(1)
socket.bind("socket")
print("contained")
