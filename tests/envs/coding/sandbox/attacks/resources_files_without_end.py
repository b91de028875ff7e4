# right: output_limit
number = 0
while True:
    number += 1
    open(f"{number}", "w").close()
