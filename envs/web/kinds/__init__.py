"""The kinds of tasks, each a small declaration: what the page asks for, and the goals to reach in order.

The tables are `buttons`, `choices`, `hidden`, `texts` and `mail`; `table` puts them together. The expert and the labels
of steps are read off these declarations (`envs/web/teacher`).
"""
