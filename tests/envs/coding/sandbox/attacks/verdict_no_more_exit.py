# right: ok
# everywhere
# The fork must end even when every way to end it is taken away.
import atexit, os, sys

print("contained", flush=True)
for module, name in ((os, "_exit"), (sys, "exit"), (atexit, "_run_exitfuncs")):
    setattr(module, name, lambda *code: None)
