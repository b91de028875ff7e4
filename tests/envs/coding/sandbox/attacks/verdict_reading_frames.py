# right: wrong
# expects: SECRET
# The expected output is looked for in every frame and in every object that the collector knows.
import gc, re, sys

seen = [repr(v) for frame in sys._current_frames().values() for v in vars(sys.modules["sys"]).values()]
frame = sys._getframe()
while frame:
    seen += [repr(v) for v in (*frame.f_locals.values(), *frame.f_globals.values())]
    frame = frame.f_back
for thing in gc.get_objects():
    try:
        seen.append(repr(thing))
    except Exception:
        pass
print((re.findall("answer-[0-9a-f]{16}", " ".join(seen)) or ["nothing"])[0])
