"""Speed on web pages, beside the selenium environment of the package miniwob. `python -m benchmarks.web` measures it.

It is apart from `python -m benchmarks`, because it needs a browser and a driver, and is time on the clock.
"""
