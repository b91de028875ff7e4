# right: wrong
# everywhere
import locale, sys

try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
sys.stdout.reconfigure(encoding="utf-16")
print("contained")
