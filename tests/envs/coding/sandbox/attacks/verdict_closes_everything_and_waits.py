# right: timeout
# everywhere
# Silence on all pipes is no end.
import os, time

os.write(1, b"contained")
os.closerange(0, 256)
time.sleep(60)
