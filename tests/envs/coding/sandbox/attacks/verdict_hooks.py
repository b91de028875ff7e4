# right: error
# everywhere
import builtins, sys, threading


def quiet(*arguments):
    print("contained", flush=True)


sys.excepthook = sys.unraisablehook = threading.excepthook = quiet
builtins.BaseException = builtins.Exception = KeyError
builtins.print("contained")
raise RuntimeError
