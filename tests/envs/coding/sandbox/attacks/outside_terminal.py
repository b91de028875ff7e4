# right: ok
import fcntl, termios

for end in (0, 1, 2):
    refused(fcntl.ioctl, end, termios.TIOCSTI, b"x")
    refused(fcntl.ioctl, end, termios.TIOCSCTTY, 0)
print("contained")
