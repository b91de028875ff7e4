# right: wrong
# everywhere
print("c\u043entained")
