# right: ok
def listen():
    s = socket.socket()
    s.bind(("0.0.0.0", 0))
    s.listen()


refused(listen)
print("contained")
