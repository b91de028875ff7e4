# right: memory
# everywhere
blobs = []
while True:
    blobs.append(bytearray(1 << 20))
