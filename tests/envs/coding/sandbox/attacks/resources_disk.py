# right: ok
def fill():
    for number in range(100):
        with open(f"{number}", "wb") as file:
            file.write(b"x" * (2 << 20))


refused(fill)
print("contained" if sum(os.path.getsize(name) for name in os.listdir(".")) <= 16 << 20 else "no limit")
