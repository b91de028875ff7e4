# right: error
# call: f
# everywhere
import os


def f():
    os.write(3, b'"x"')
    return "contained"
