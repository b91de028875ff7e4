# right: ok
# everywhere
held = []
try:
    while len(held) < 10000:
        held.append(open("/dev/null"))
    print("no limit")
except OSError:
    print("contained")
