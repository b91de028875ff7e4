# right: timeout
# everywhere
import signal

signal.signal(signal.SIGXCPU, signal.SIG_IGN)
signal.setitimer(signal.ITIMER_REAL, 0)
while True:
    pass
