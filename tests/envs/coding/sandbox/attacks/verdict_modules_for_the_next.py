# right: ok
# everywhere
# What the next test would import if it were still there.
for name in ("json", "re", "heapq", "sitecustomize", "usercustomize", "encodings", "colorsys"):
    with open(name + ".py", "w") as file:
        file.write("print('mark')")
print("contained")
