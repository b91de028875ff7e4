"""What pages for a browser are made of: one frame with a policy and a list of sections, one style, and its colours.

A page is one file that loads nothing. Templates of the rooms above extend the frame, so that all pages look alike.
"""
