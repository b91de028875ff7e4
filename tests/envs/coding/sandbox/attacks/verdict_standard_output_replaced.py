# right: wrong
# everywhere
import io, sys

sys.stdout = io.StringIO()
print("contained")
