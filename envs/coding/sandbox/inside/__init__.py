"""The watcher, which runs inside a box: it runs each test in a new fork and reports how the test ended.

The harness sends the source of these modules into the box, so they import only the standard library and each other.
Boxes are made in `backends`. Outputs are compared outside, in `judge.py`: no expected output enters a box.
"""
