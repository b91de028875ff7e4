# right: error
# call: f
# everywhere
class Same:
    def __eq__(self, other):
        return True

    def __reduce__(self):
        return (print, ("contained",))


def f():
    return Same()
