# right: ok
import os, signal

for _ in range(8):
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCONT, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(child, os.WUNTRACED)
print("contained")
