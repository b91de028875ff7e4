# right: ok
import time

refused(socket.sethostname, "mark")
refused(time.clock_settime, time.CLOCK_REALTIME, 0)
refused(system, 164, 170, ctypes.create_string_buffer(16), None)
refused(system, 159, 171, ctypes.create_string_buffer(208))
refused(system, 169, 142, 0xFEE1DEAD - 2**32, 672274793, 0x1234567, None)
print("contained")
