# right: ok
def use(name):
    __import__(name)


for name in ("torch", "numpy", "pytest", "rlanything", "envs.coding.problem"):
    try:
        use(name)
        print("escaped:", name)
    except ImportError:
        pass
print("contained")
