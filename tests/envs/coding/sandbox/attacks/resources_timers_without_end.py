# right: ok
# Each POSIX timer is memory of the kernel: there is an end of them.
timer, made = ctypes.c_void_p(), 0
while made < 10_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0:
    made += 1
print("contained" if 0 < made <= 2048 else made)
