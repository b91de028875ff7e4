# right: output_limit
# everywhere
import sys

for _ in range(100):
    sys.stderr.write("x" * (1 << 20))
print("contained")
