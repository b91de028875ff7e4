# right: ok
# A grandchild in its own session outlives the program, and would write for the next one to find.
import os, time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(64):
            time.sleep(0.02)
            with open(f"mark{number}", "w") as file:
                file.write("left over")
    os._exit(0)
print("contained")
