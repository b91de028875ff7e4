# right: ok
# Process 1 ignores what comes from inside its namespace, SIGKILL and SIGSTOP too.
import signal

for number in set(signal.Signals) | {32, 33, 40}:
    try:
        os.kill(1, number)
    except OSError:
        pass
    libc.syscall(234 if not ARM else 131, 1, 1, int(number))
print("contained" if os.path.exists("/proc/1") else "process 1 is gone")
