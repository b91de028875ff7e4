# right: error
# everywhere
class Code(int):
    def __and__(self, other):
        raise SystemExit(0)

    def __bool__(self):
        return False


print("contained")
raise SystemExit(Code(7))
