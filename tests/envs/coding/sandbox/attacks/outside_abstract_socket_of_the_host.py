# right: ok
s = socket.socket(socket.AF_UNIX)
refused(s.connect, "\0HOST_SOCKET")
print("contained")
