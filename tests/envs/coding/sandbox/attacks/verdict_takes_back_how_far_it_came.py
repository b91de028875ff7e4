# right: ok wrong
# everywhere
# A fork says how far it came before the program runs: a program that takes this back would be nobody's fault.
import os

taken = []
for number in range(3, 16):
    try:
        pipe = os.open(f"/proc/self/fd/{number}", os.O_RDWR | os.O_NONBLOCK)
        taken.append(os.read(pipe, 1 << 16))
    except OSError:
        pass
print("contained" if not any(taken) else taken)
