# right: ok
# The kernel sends the signal for the file's owner: another road to process 1.
import fcntl, signal

left, right = socket.socketpair()
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGIO, signal.SIGTERM):
    refused_or_not = [(fcntl.F_SETFL, os.O_ASYNC), (10, number), (fcntl.F_SETOWN, 1)]
    for command, value in refused_or_not:
        try:
            fcntl.fcntl(left, command, value)
        except OSError:
            pass
    right.send(b"x")
print("contained")
