# right: error memory
# everywhere
import sys

sys.setrecursionlimit(2**31 - 1)


class A:
    def __getattr__(self, name):
        return getattr(self, name + "x")


A().x
