# right: wrong
# everywhere
import os

os.write(1, b"contained\xff\xfe\x00")
