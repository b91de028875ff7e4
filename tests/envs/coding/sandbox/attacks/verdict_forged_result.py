# right: wrong
# call: f
# everywhere
# The result may be forged as much as it likes: what it must be is known outside only.
import os


def f():
    os.write(3, b'"ok"')
    os._exit(0)
