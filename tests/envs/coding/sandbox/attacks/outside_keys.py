# right: ok
refused(system, 248, 217, b"user", b"mark", b"x", 1, -5)
refused(system, 250, 219, 0, -5, 1)
refused(system, 249, 218, b"user", b"mark", None, -5)
print("contained")
