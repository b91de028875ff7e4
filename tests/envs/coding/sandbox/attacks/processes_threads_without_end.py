# right: error
import threading, time

for _ in range(10000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
