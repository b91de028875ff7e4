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
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
    refused(socket.socketpair, socket.AF_UNIX, kind)
print("contained")
