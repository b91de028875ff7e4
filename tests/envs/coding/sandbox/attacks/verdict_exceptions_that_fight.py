# right: error
# everywhere
class Fight(BaseException):
    def __str__(self):
        raise SystemExit(0)

    def __repr__(self):
        raise SystemExit(0)

    @property
    def __traceback__(self):
        raise SystemExit(0)


print("contained")
raise Fight
