# right: ok
def send():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return s.sendto(b"x", ("8.8.8.8", 53))


refused(send)
print("contained")
