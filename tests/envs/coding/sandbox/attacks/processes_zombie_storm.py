# right: ok
import os

made = 0
for _ in range(300):
    try:
        if os.fork() == 0:
            os._exit(0)
        made += 1
    except OSError:
        pass
print("contained" if made < 100 else f"{made} zombies")
