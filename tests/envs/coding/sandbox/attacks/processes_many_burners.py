# right: timeout
# CPU time is counted over all processes together.
import os

for _ in range(3):
    os.fork()
while True:
    pass
