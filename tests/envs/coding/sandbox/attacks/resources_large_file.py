# right: ok
# everywhere
def write():
    with open("large", "wb") as file:
        for _ in range(100):
            file.write(b"x" * (1 << 20))


refused(write)
print("contained")
