"""Whether a run goes on: what must not change while it is trained, and the divisions that its user may change.

A live folder is named after everything that a run depends on (`runs/fingerprint.py`), so a start with anything else has
another folder and begins from the beginning.
"""
