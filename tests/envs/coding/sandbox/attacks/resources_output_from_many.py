# right: output_limit
import os

for _ in range(3):
    os.fork()
while True:
    os.write(1, b"x" * 65536)
