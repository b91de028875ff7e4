# right: ok
import shutil

for target in ("HOST_FILE", "/etc/passwd", os.__file__, "/dev/mem"):
    os.symlink(target, "link")
    refused(open, "link", "a")
    os.unlink("link")
os.symlink("/usr", "folder")
os.symlink(".", "loop")
os.symlink("loop/loop/loop", "loops")
print("contained")
