"""What people can see of long work while it goes on: lines, and a small file that says where a run is.

None of it is a result, and no result depends on it. Who reads the file and draws is `rlanything/watch/`.
"""
