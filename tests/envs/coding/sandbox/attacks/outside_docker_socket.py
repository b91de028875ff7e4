# right: ok
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock"):
    refused(lambda: socket.socket(socket.AF_UNIX).connect(path))
print("contained")
