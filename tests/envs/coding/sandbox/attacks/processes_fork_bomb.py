# right: error timeout memory
import os

while True:
    os.fork()
