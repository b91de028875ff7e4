# right: error
# everywhere
import os, resource, signal

try:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, 1 << 30))
    print("escaped")
except (OSError, ValueError):
    pass
os.kill(os.getpid(), signal.SIGABRT)
