# right: timeout memory wrong
# everywhere
blobs = []
while True:
    try:
        blobs.append(bytearray(1 << 20))
    except MemoryError:
        pass
