# right: output_limit memory timeout
# call: f
# everywhere
def f():
    return ["x" * (1 << 20)] * 100
