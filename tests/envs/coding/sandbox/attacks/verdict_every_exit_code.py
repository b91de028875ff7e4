# right: error memory
# everywhere
import os

print("contained", flush=True)
os._exit(int.from_bytes(os.urandom(1), "big") or 1)
