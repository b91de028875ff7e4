# right: ok
import fcntl

held, sent = [], 0
refused_at = None
while refused_at is None:
    try:
        held.append(os.pipe())
        fcntl.fcntl(held[-1][1], 1031, 1 << 20)
    except OSError as error:
        refused_at = error
    if held:
        os.set_blocking(held[-1][1], False)
        try:
            sent += os.write(held[-1][1], b"x" * (1 << 20))
        except OSError:
            pass
print("contained" if sent <= 64 << 20 else sent)
