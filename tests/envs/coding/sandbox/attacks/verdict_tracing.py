# right: ok
# everywhere
import gc, sys


def follow(frame, event, argument):
    frame.f_trace_opcodes = True
    return follow


gc.callbacks.append(lambda phase, info: None)
gc.set_threshold(1)
sys.setprofile(follow)
sys.settrace(follow)
print("contained")
