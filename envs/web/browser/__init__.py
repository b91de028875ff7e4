"""One Chromium for each process, with a page for each kind of task. An episode is its seed and its actions.

Because a page that gets the same seed and the same actions shows the same, a page can be used by any number of episodes
that advance together: the episode that is asked for is played again where the page is at another one.
"""
