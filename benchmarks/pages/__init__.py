"""Pages in a real browser: how long they take (`speed`), and pictures for the documentation (`pictures`, `report`).

All need playwright and a chromium, as the tests of pages do. Nothing here is part of the package.
"""
