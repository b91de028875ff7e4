# right: timeout
# everywhere
import signal

signal.pause()
