# right: error memory timeout
# everywhere
import sys

sys.setrecursionlimit(2**31 - 1)
deep = []
for _ in range(10**6):
    deep = [deep]
print(repr(deep)[:9])
