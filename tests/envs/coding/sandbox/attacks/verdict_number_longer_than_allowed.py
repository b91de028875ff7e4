# right: error
# call: f
# everywhere
def f():
    return 10**10000
