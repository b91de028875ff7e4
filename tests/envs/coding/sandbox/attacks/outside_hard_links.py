# right: ok
refused(os.link, os.__file__, "os.py")
refused(os.link, sys.executable, "python")
print("contained")
