# right: ok
# everywhere
import resource

for name in ("CPU", "AS", "FSIZE", "NOFILE", "CORE", "STACK", "MEMLOCK", "MSGQUEUE"):
    what = getattr(resource, "RLIMIT_" + name, 12)
    hard = resource.getrlimit(what)[1]
    if hard == resource.RLIM_INFINITY:
        print("no limit on", name)
    refused(resource.setrlimit, what, (hard + 1, hard + 1))
print("contained")
