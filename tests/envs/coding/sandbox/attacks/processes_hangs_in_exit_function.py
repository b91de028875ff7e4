# right: timeout
# everywhere
import atexit, time

print("contained", flush=True)
atexit.register(time.sleep, 60)
