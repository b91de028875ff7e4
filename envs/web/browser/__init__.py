"""One Chromium for each process, with up to eight pages for each kind of task. An episode is its seed and its actions.

A page that gets the same seed and the same actions shows the same. So any page of its kind can play an episode: from
its start, or on from where it has played it.
"""
