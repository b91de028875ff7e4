# right: memory timeout error syntax
# everywhere
x = ((((1 << 100) << 1000) << 10000) ** 1000) ** 1000
y = "x" * 10**12
