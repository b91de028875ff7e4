# right: output_limit
# everywhere
import sys

for _ in range(100):
    sys.stdout.write("x" * (1 << 20))
