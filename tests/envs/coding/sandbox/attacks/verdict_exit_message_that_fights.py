# right: error
# everywhere
class Message:
    def __str__(self):
        raise SystemExit(0)


print("contained")
raise SystemExit(Message())
