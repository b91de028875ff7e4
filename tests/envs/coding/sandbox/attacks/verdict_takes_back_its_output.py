# right: ok wrong
# everywhere
# What was written and not yet fetched is read again by the program: its length must not be believed.
import os, threading, time

pipe = os.open("/proc/self/fd/1", os.O_RDWR | os.O_NONBLOCK)
end = time.monotonic() + 0.4


def steal():
    while time.monotonic() < end:
        try:
            os.read(pipe, 1 << 16)
        except BlockingIOError:
            pass


threading.Thread(target=steal).start()
while time.monotonic() < end:
    try:
        os.write(pipe, b"x" * 5000)
    except BlockingIOError:
        pass
    time.sleep(0.01)
print("contained")
