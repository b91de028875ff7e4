# right: ok
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE = 1, 36, 4
for option, value in ((PR_SET_PDEATHSIG, 0), (PR_SET_CHILD_SUBREAPER, 1), (PR_SET_DUMPABLE, 1)):
    libc.prctl(option, value, 0, 0, 0)
if os.fork() == 0:
    if os.fork() == 0:
        import time

        time.sleep(60)
    os._exit(0)
print("contained")
