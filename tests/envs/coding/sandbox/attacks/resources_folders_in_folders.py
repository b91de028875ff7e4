# right: ok
# Deeper than a path may be long, and closed: hard to clean up.
import os

for _ in range(450):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
open("mark", "w").close()
os.chmod(".", 0)
os.chmod("/tmp/" + "d" * 200, 0)
print("contained")
