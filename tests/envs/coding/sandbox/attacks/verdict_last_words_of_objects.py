# right: ok
# everywhere
import sys, weakref


class Last:
    def __del__(self):
        while True:
            pass


last = Last()
last.self = last
sys.last = last
print("contained")
