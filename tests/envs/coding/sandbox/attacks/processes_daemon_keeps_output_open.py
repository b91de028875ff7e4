# right: ok
# everywhere
# The program has ended when its first process has, whoever still holds the pipe.
import os, time

print("contained", flush=True)
if os.fork() == 0:
    os.setsid()
    time.sleep(60)
    print("more")
