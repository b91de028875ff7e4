# right: ok
# everywhere
import os

os.dup2(1, 3)
os.dup2(0, 2)
os.write(3, b"contained")
