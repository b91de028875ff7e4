# right: wrong
# everywhere
import os

os.closerange(0, 256)
