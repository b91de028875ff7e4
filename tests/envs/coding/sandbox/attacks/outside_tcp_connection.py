# right: ok
refused(socket.create_connection, ("127.0.0.1", 22), 1)
print("contained")
