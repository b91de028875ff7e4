# right: timeout
# everywhere
print(7 ** (7**10) % 10)
