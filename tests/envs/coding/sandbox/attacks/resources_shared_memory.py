# right: memory error timeout
import mmap, os, time

blobs = [mmap.mmap(-1, 64 << 20) for _ in range(3)]
for _ in range(3):
    os.fork()
for blob in blobs:
    for place in range(0, len(blob), 4096):
        blob[place] = 1
time.sleep(60)
