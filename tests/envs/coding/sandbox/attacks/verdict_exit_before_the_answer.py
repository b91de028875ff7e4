# right: wrong
# everywhere
import os

print("contained")
os._exit(0)
