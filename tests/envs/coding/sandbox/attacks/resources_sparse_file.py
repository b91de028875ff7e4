# right: ok
# everywhere
file = open("sparse", "wb")
refused(os.truncate, "sparse", 1 << 40)
refused(os.posix_fallocate, file.fileno(), 0, 1 << 34)
print("contained")
