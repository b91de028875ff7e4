# right: ok
for family in (
    socket.AF_NETLINK,
    socket.AF_PACKET,
    socket.AF_VSOCK,
    socket.AF_ALG,
    socket.AF_INET6,
    31,
):
    refused(socket.socket, family, socket.SOCK_RAW)
    refused(socket.socket, family, socket.SOCK_STREAM)
print("contained")
