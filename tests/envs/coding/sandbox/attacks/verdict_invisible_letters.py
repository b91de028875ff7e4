# right: wrong
# everywhere
print("con\u200btained\u2060")
