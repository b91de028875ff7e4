# right: error
# call: f
# everywhere
import os


def f():
    text = b"[" * 100000 + b"]" * 100000
    while text:
        text = text[os.write(3, text) :]
    os._exit(0)
