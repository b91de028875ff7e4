# right: ok
def connect():
    socket.socket(socket.AF_UNIX).connect("\0HOST_SOCKET")


refused(connect)
print("contained")
