# right: memory
# everywhere
# Each process stays below its own limit; together they do not.
import os, time

for _ in range(3):
    os.fork()
blob = bytearray(os.urandom(1 << 20)) * 100
time.sleep(60)
