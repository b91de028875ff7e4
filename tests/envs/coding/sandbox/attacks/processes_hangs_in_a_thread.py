# right: timeout
# everywhere
import threading, time

print("contained", flush=True)
threading.Thread(target=time.sleep, args=(60,)).start()
