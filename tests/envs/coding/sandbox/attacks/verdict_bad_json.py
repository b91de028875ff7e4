# right: error
# call: f
# everywhere
import os


def f():
    os.write(3, b'{"end": "exit"}\xff\xfe\x00')
    os._exit(0)
