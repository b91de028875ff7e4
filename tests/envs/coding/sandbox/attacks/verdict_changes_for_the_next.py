# right: ok
# everywhere
import builtins, os, sys

builtins.print = builtins.open = builtins.len = None
os.environ["MARK"] = sys.argv[0] = sys.ps1 = "mark"
sys.path.insert(0, "/tmp")
sys.modules["colorsys"] = sys.modules["json"] = None
os.umask(0o777)
sys.setrecursionlimit(50)
os.write(1, b"contained")
