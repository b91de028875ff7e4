# right: ok
# everywhere
# -*- coding: utf-7 -*-
# A text has no encoding: the line above means nothing, and so does +AGkAbQ-
print("contained")
