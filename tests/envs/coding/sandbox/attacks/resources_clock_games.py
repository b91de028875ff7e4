# right: timeout
# everywhere
import time

for name in ("time", "monotonic", "perf_counter", "process_time"):
    setattr(time, name, lambda: 0.0)
for _ in range(10**9):
    time.sleep(0.2)
