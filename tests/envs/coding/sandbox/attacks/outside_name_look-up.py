# right: ok
refused(socket.getaddrinfo, "localhost.example", 80)
print("contained")
