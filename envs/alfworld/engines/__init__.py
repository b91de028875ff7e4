"""The two engines behind the protocol `Environment`: pure Python, and ALFWorld's own code in a child process.

Both give the same text for the same game. The rules themselves are in `play/`.
"""
