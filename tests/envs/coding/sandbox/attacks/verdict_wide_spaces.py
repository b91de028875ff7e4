# right: ok
# everywhere
# Blanks are what Python's str.split takes for blanks, here as in the reference.
print("\u2003\u00a0contained\u3000\x1f")
