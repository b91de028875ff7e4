# right: memory
# everywhere
blob = bytearray(1 << 40)
