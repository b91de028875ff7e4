# right: memory
# everywhere
# Its own loss: no exit code stands for anything better than an error.
import os

print("contained", flush=True)
os._exit(91)
