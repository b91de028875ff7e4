# right: ok
import os, sys

program = """
import socket
try:
    socket.socket()
    print('escaped')
except OSError:
    print('contained')
"""
os.execv(sys.executable, [sys.executable, "-S", "-c", program])
